#include "parallel/sharding/data_parallel.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "absl/types/span.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "parallel/sharding/creation.h"
#include "parallel/sharding/engine.h"

namespace plait::parallel {

using models::BlockState;
using models::ParameterUnit;

absl::StatusOr<std::unique_ptr<DataParallel>> DataParallel::Create(const comm::DeviceMesh& mesh,
                                                                   std::vector<ParameterUnit> units,
                                                                   const DataParallelOptions& options,
                                                                   const InitializeUnit& initialize) {
  PLAIT_RETURN_IF_ERROR(CheckUnits(mesh, units, options, static_cast<bool>(initialize)));
  auto engine = std::make_shared<Engine>(mesh, std::move(units), options);
  PLAIT_RETURN_IF_ERROR(mesh.world().Agree(engine->MakeStore()));
  engine->MakeUnits(initialize);
  PLAIT_RETURN_IF_ERROR(mesh.world().Agree(engine->status));
  return std::unique_ptr<DataParallel>(new DataParallel(std::move(engine)));
}

DataParallel::DataParallel(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}
DataParallel::~DataParallel() = default;

BlockState DataParallel::Run(std::size_t block, std::size_t count, const models::BlockForward& forward,
                             const BlockState& input) {
  Engine& engine = *engine_;
  PLAIT_CHECK(!engine.broken) << "an exception left DataParallel::Backward; create a new engine";
  const auto end = static_cast<std::ptrdiff_t>(block + count);
  const UnitIndices units = engine.UnitsOfBlocks(block, count);
  const Engine::Holds holds(engine, units);
  engine.following.reset();
  engine.PrefetchBlock(engine.OrFollowing(end));
  engine.Wait(units);
  if (engine.IsInStage(end)) {
    engine.GatherBlock(end);
    if (engine.options.prefetch) engine.PrefetchBlock(engine.OrFollowing(end + 1));
  } else {
    engine.HoldFollowing(units);
  }
  BlockState output = forward(input);
  engine.AdvanceGathers();
  const auto requires_grad = [](const at::Tensor& t) { return t.defined() && t.requires_grad(); };
  if (!at::GradMode::is_enabled() ||
      !(requires_grad(output.hidden) || requires_grad(output.auxiliary_loss))) {
    return output;
  }
  // If the last block's backward comes next, the block stays unsharded: held from now on, or as the stage's following.
  const bool staged = engine.stage.has_value();
  const std::ptrdiff_t last = staged ? engine.stage->following + 1 : std::ssize(engine.blocks);
  const bool is_next = end == last;
  const bool stays = !engine.options.reshard_after_forward || (is_next && !staged);
  engine.RecordUse(units, static_cast<std::ptrdiff_t>(block), stays, {output.hidden, output.auxiliary_loss});
  const auto before = static_cast<std::ptrdiff_t>(block) - 1;
  if (is_next && engine.IsInStage(before)) engine.PrefetchBlock(before);
  return output;
}

at::Tensor DataParallel::Forward(const std::function<at::Tensor()>& forward) {
  Engine& engine = *engine_;
  PLAIT_CHECK(!engine.broken) << "an exception left DataParallel::Backward; create a new engine";
  const Engine::Holds holds(engine, engine.roots);
  engine.PrefetchBlock(engine.stage.has_value() ? static_cast<std::ptrdiff_t>(engine.stage->first) : 0);
  engine.Wait(engine.roots);
  at::Tensor result = forward();
  if (at::GradMode::is_enabled() && result.requires_grad()) {
    engine.RecordUse(engine.roots, /*block=*/-1, /*held=*/true, {result});
  } else {
    engine.ReshardUnheld();
  }
  return result;
}

void DataParallel::BeginStage(const StageBlocks& stage) {
  PLAIT_CHECK(stage.first + stage.count <= engine_->blocks.size() &&
              stage.following < static_cast<std::ptrdiff_t>(engine_->blocks.size()))
      << "blocks " << stage.first << " to " << stage.first + stage.count << ", then " << stage.following
      << ", of a rank with " << engine_->blocks.size();
  engine_->stage = stage;
}

std::shared_ptr<const void> DataParallel::Hold(std::size_t block, std::size_t count) {
  UnitIndices units = engine_->UnitsOfBlocks(block, count);
  units.insert(units.end(), engine_->roots.begin(), engine_->roots.end());
  const auto* const holds = new Engine::Holds(*engine_, units);
  std::shared_ptr<const void> held(
      holds, [engine = engine_](const void* p) { delete static_cast<const Engine::Holds*>(p); });
  engine_->Wait(units);
  return held;
}

void DataParallel::Backward(const at::Tensor& loss, const MicroBatch& micro_batch) {
  Backward([&loss] { loss.backward(); }, micro_batch);
}

void DataParallel::Backward(const std::function<void()>& backward, const MicroBatch& micro_batch) {
  Engine& engine = *engine_;
  PLAIT_CHECK(!engine.broken) << "an exception left DataParallel::Backward; create a new engine";
  PLAIT_CHECK(!engine.reduced)
      << "Backward after the last micro-batch of a step: call the optimizer's Step first, or say {.last = "
         "false} for the micro-batches before";
  PLAIT_CHECK(!engine.options.reproducible || !micro_batch.reduce_every_micro_batch)
      << "reproducible sums of every micro-batch: its tree adds up those of one rank first";
  const bool shards_gradients = ShardsGradients(engine.options.strategy);
  const bool reduces = micro_batch.last || (micro_batch.reduce_every_micro_batch && shards_gradients);
  for (const std::unique_ptr<Unit>& unit : engine.units) unit->BeginMicroBatch(micro_batch.leaf);
  engine.reductions->Begin(reduces, micro_batch.last);
  engine.in_backward = engine.broken = true;
  backward();
  engine.in_backward = engine.broken = false;
  engine.reductions->Finish();
  for (const std::unique_ptr<Unit>& unit : engine.units) unit->EndMicroBatch();
  engine.EndUses();
  engine.PrefetchUnit(0);
  for (std::size_t u = 0; u < engine.units.size(); ++u) {
    engine.shards[u].gradient = engine.units[u]->gradient();
  }
  engine.reduced = engine.partial = micro_batch.last;
}

void DataParallel::AddGradient(const at::Tensor& parameter, const at::Tensor& gradient) {
  engine_->CheckInBackward("DataParallel::AddGradient");
  const auto found = engine_->by_parameter.find(parameter.unsafeGetTensorImpl());
  PLAIT_CHECK(found != engine_->by_parameter.end()) << "a gradient of a tensor that is no trained parameter";
  PLAIT_CHECK(gradient.sizes() == parameter.sizes())
      << "a gradient of shape " << gradient.sizes() << " for a parameter of shape " << parameter.sizes();
  parameter.mutable_grad() = gradient.detach();
  engine_->OnGradient(found->second.first, found->second.second);
}

void DataParallel::SumPartialGradients() { engine_->SumPartialGradients(); }

double DataParallel::GradientNorm() {
  PLAIT_CHECK(engine_->reduced) << "an optimizer's Step, or GradientNorm, without gradients that are "
                                   "reduced: call Backward before it, for the "
                                   "last micro-batch with {.last = true}";
  engine_->SumPartialGradients();
  return engine_->GradientNorm();
}

const std::vector<Shard>& DataParallel::shards() const { return engine_->shards; }

const std::vector<ReplicatedTensor>& DataParallel::replicated_tensors() const {
  return engine_->replicated_tensors;
}

absl::Status DataParallel::VisitMaster(std::size_t shard, bool changes, const MasterVisitor& visit) const {
  const at::NoGradGuard no_grad;
  const std::vector<std::unique_ptr<Unit>>& units = engine_->units;
  return units[shard]->VisitMaster(changes, [&](const at::Tensor& master) {
    units[(shard + 1) % units.size()]->master().Prefetch();
    return visit(master);
  });
}

bool DataParallel::masters_resident() const { return engine_->store == nullptr; }
at::TensorOptions DataParallel::master_options() const { return engine_->units[0]->context().master_options; }
const absl::Status& DataParallel::status() const { return engine_->status; }

void DataParallel::AllGatherParameters() {
  engine_->ForgetUses();
  for (const std::unique_ptr<Unit>& unit : engine_->units) unit->AllGather();
  engine_->BroadcastBuffers();
  engine_->reduced = false;
}

void DataParallel::WaitForParameters() {
  for (const std::unique_ptr<Unit>& unit : engine_->units) unit->WaitUnsharded();
}

void DataParallel::VisitUnsharded(const std::function<void(const ParameterUnit& unit)>& visit) {
  Engine& engine = *engine_;
  for (std::size_t u = 0; u < engine.model.size(); ++u) {
    UnitIndices parts;
    for (std::size_t i = engine.first_unit[u]; i < engine.first_unit[u + 1]; ++i) parts.push_back(i);
    const Engine::Holds holds(engine, parts);
    engine.Wait(parts);
    engine.PrefetchUnit(engine.first_unit[u + 1]);
    visit(engine.model[u]);
  }
}

const std::vector<ParameterUnit>& DataParallel::units() const { return engine_->model; }
const comm::DeviceMesh& DataParallel::mesh() const { return engine_->mesh; }
const DataParallelOptions& DataParallel::options() const { return engine_->options; }
std::int64_t DataParallel::unexpected_reads() const {
  return engine_->store == nullptr ? 0 : engine_->store->unexpected_reads();
}
std::int64_t DataParallel::peak_bytes() const { return engine_->pool.peak_bytes(); }

}  // namespace plait::parallel
