#include "tools/training/sharded_model.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/seed.h"
#include "base/status_macros.h"
#include "parallel/activation_checkpoint/activation_checkpoint.h"
#include "parallel/training_state/training_state.h"

namespace plait::training {
namespace {

// The units that have parameters, and the index of each in the model's units().
struct EngineUnits {
  std::vector<models::ParameterUnit> units;
  std::vector<std::size_t> index;
};

EngineUnits UnitsOf(const TrainedModel& trained, const comm::DeviceMesh& mesh) {
  EngineUnits result;
  std::vector<models::ParameterUnit> units = trained.model->units();
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (units[i].parameters.empty()) continue;
    for (models::ParameterSpec& spec : units[i].parameters) {
      spec.decays = spec.decays || trained.decays_all;
      if (mesh.Has("lp")) spec.placement.replicated.push_back("lp");
    }
    result.units.push_back(std::move(units[i]));
    result.index.push_back(i);
  }
  return result;
}

// A block of the model that is run in another way: by a layer-parallel solver, say.
class RunnerBlock final : public models::Block {
 public:
  RunnerBlock(std::size_t index, const TrainedModel& trained) : index_(index), trained_(trained) {}
  models::BlockState Forward(const models::BlockState& input, const models::BlockContext& context) override {
    return trained_.run_block(index_, input, context);
  }
  std::vector<at::Tensor> Parameters() const override {
    return trained_.model->blocks()[index_]->Parameters();
  }

 private:
  std::size_t index_;
  const TrainedModel& trained_;
};

absl::StatusOr<parallel::CheckpointPolicy> PolicyOf(const Settings& settings,
                                                    const models::BlockModel& model) {
  std::vector<std::string> names;
  for (const models::ParameterUnit& unit : model.units()) {
    if (unit.block != models::ParameterUnit::kRoot) names.push_back(unit.name);
  }
  return parallel::CheckpointPolicy::Parse(
      absl::StrReplaceAll(settings.activation_checkpointing, {{"every-", "every="}}), names);
}

void SeedParameters(std::uint64_t seed) {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  generator.set_current_seed(base::DeriveSeed(seed, "parameters"));
}

at::Tensor CopyTo(at::Device device, const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.device() == device) return tensor;
  const bool pinned = !device.is_cpu() && tensor.is_cpu();
  return (pinned ? tensor.pin_memory() : tensor)
      .to(tensor.options().device(device), /*non_blocking=*/pinned, /*copy=*/false);
}

bool IsFinite(const at::Tensor& tensor) { return at::isfinite(tensor).all().item<bool>(); }

// The first parameter of the shard with such values; empty: none.
std::string NonFiniteName(const parallel::Shard& shard, const at::Tensor& values) {
  if (!values.defined()) return "";
  for (const parallel::FlatSlice& slice : shard.layout->Slices(shard.rank)) {
    if (!IsFinite(values.narrow(0, slice.shard_offset, slice.end - slice.begin))) {
      return shard.layout->parameters()[slice.parameter].name;
    }
  }
  return "";
}

}  // namespace

absl::StatusOr<std::int64_t> CheckpointedBlocks(const Settings& settings, const models::BlockModel& model) {
  PLAIT_ASSIGN_OR_RETURN(const parallel::CheckpointPolicy policy, PolicyOf(settings, model));
  return static_cast<std::int64_t>(policy.count());
}

parallel::MemoryPlan PlanMemory(const Settings& settings, const comm::DeviceMesh& mesh, at::Device device,
                                const TrainedModel& trained) {
  const int replicas = mesh.axis("dp_replicate").size(), shards = mesh.axis("dp_shard").size();
  return parallel::PlanMemory({.units = parallel::PlanUnits(UnitsOf(trained, mesh).units, shards),
                               .strategy = settings.parsed_strategy(),
                               .replicate_ranks = replicas,
                               .shard_ranks = shards,
                               .master_type = settings.master_type(),
                               .compute_type = settings.compute_type(),
                               .optimizer = trained.optimizer.kind,
                               .moments_offload = settings.state_offload().target,
                               .masters_offload = settings.state_offload().target,
                               .offloads_parameters = settings.offload_params,
                               .reshard_after_forward = settings.reshard_after_forward,
                               .prefetch = settings.prefetch,
                               .adds_unsharded_gradients = settings.gradient_accumulation_steps > 1 &&
                                                           !settings.reduce_each_micro_batch,
                               // The copy that is being written is in the host's memory.
                               .saves_asynchronously = device.is_cpu() && !settings.checkpoint_dir.empty(),
                               .micro_batch = settings.SamplesPerRank(replicas * shards),
                               .activation_bytes_per_sample = trained.activation_bytes_per_sample,
                               .fixed_activation_bytes = trained.fixed_activation_bytes,
                               .evaluation_bytes = trained.evaluation_bytes});
}

absl::Status ShardedModel::Assemble(const Settings& settings) {
  PLAIT_ASSIGN_OR_RETURN(const parallel::CheckpointPolicy policy, PolicyOf(settings, *trained_.model));
  EngineUnits units = UnitsOf(trained_, mesh_);
  SeedParameters(settings.seed);
  absl::Status initialized;
  const auto initialize = [&](std::size_t unit) {
    if (!trained_.initialize) return trained_.model->ResetParameters(units.index[unit]);
    if (initialized.ok()) initialized = trained_.initialize(units.index[unit]);
  };
  PLAIT_ASSIGN_OR_RETURN(
      engine_, parallel::DataParallel::Create(mesh_, std::move(units.units),
                                              {.strategy = settings.parsed_strategy(),
                                               .reshard_after_forward = settings.reshard_after_forward,
                                               .prefetch = settings.prefetch,
                                               .compute_type = settings.compute_type(),
                                               .device = device_,
                                               .masters_offload = settings.state_offload(),
                                               .offloads_parameters = settings.offload_params},
                                              initialize));
  PLAIT_RETURN_IF_ERROR(mesh_.world().Agree(initialized));
  parallel::StateStoreOptions moments_offload = settings.state_offload();
  moments_offload.device = device_;
  PLAIT_ASSIGN_OR_RETURN(optimizer_,
                         parallel::ShardedOptimizer::Create(*engine_, trained_.optimizer, moments_offload));
  std::vector<std::shared_ptr<models::Block>> blocks = trained_.model->blocks();
  for (std::size_t i = 0; trained_.run_block && i < blocks.size(); ++i) {
    blocks[i] = std::make_shared<RunnerBlock>(i, trained_);
  }
  run_ = [engine = engine_.get(), policy, blocks](std::size_t block, const models::BlockState& input,
                                                  const models::BlockContext& context) {
    const auto forward = [&](const models::BlockState& state) {
      return policy.Forward(block, blocks[block], state, context);
    };
    return engine->Run(block, forward, input);
  };
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ShardedModel>> ShardedModel::Create(const Settings& settings,
                                                                   const comm::DeviceMesh& mesh,
                                                                   at::Device device,
                                                                   const TrainedModel& trained) {
  std::unique_ptr<ShardedModel> sharded(new ShardedModel(mesh, device, trained));
  const absl::Status assembled = sharded->Assemble(settings);
  if (sharded->engine_ != nullptr) sharded->engine_->WaitForParameters();
  PLAIT_RETURN_IF_ERROR(assembled);
  return sharded;
}

models::Batch ShardedModel::OnDevice(const models::Batch& batch) const {
  models::Batch moved = {CopyTo(device_, batch.inputs), CopyTo(device_, batch.targets), batch.valid_targets};
  const at::Tensor& targets = batch.targets;
  if (!device_.is_cpu() && targets.defined() && targets.is_cpu() && moved.valid_targets < 0) {
    moved.valid_targets = targets.ge(0).sum().item<std::int64_t>();
  }
  return moved;
}

models::LossSum ShardedModel::Loss(const models::Batch& batch) {
  const models::Batch here = OnDevice(batch);
  models::LossSum loss;
  loss.sum = engine_->Forward([&] {
    const models::LossSum part = models::RunModel(*trained_.model, here, run_);
    loss.count = part.count;
    return part.sum;
  });
  return loss;
}

at::Tensor ShardedModel::Output(const models::Batch& batch) {
  const models::Batch here = OnDevice(batch);
  return engine_->Forward([&] { return models::RunOutput(*trained_.model, here, run_); });
}

void ShardedModel::Forward(const std::function<void(const models::BlockRunner& run)>& forward) {
  engine_->Forward([&] {
    forward(run_);
    return at::zeros({});
  });
}

absl::Status ShardedModel::status() const {
  return mesh_.world().Agree(base::Prefixed(engine_->status(), "--offload"));
}

void ShardedModel::VisitParameters(
    const std::function<void(const std::string& name, const at::Tensor& value)>& visit) {
  engine_->VisitUnsharded([&](const models::ParameterUnit& unit) {
    for (const models::ParameterSpec& spec : unit.parameters) visit(spec.name, spec.tensor.detach());
  });
}

std::string ShardedModel::FirstNonFinite() const {
  for (std::size_t i = 0; i < engine_->shards().size(); ++i) {
    const parallel::Shard& shard = engine_->shards()[i];
    std::string name;
    const absl::Status read = engine_->VisitMaster(i, /*changes=*/false, [&](const at::Tensor& master) {
      name = NonFiniteName(shard, master);
      return absl::OkStatus();
    });
    if (!read.ok()) return std::string(read.message());
    if (!name.empty()) return "parameter " + name;
    name = NonFiniteName(shard, shard.gradient);
    if (!name.empty()) return "gradient of " + name;
  }
  return "";
}

absl::StatusOr<std::vector<parallel::TensorPiece>> ShardedModel::Pieces() const {
  return parallel::PiecesOf(*engine_, optimizer_.get());
}

absl::Status ShardedModel::Restore(parallel::Checkpoint& checkpoint) {
  const absl::Status restored = parallel::Restore(checkpoint, *engine_, optimizer_.get());
  return base::Prefixed(mesh_.world().Agree(restored), "--resume");
}

}  // namespace plait::training
