#include "parallel/sharding/data_parallel.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <cmath>
#include <utility>

#include "absl/types/span.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "comm/buffer.h"
#include "parallel/sharding/creation.h"
#include "parallel/sharding/reductions.h"
#include "parallel/sharding/unit.h"

namespace plait::parallel {

struct DataParallel::State : std::enable_shared_from_this<DataParallel::State> {
  State(const DataParallelAxes& a, std::vector<ParameterUnit> u, const DataParallelOptions& o)
      : axes(a), model(std::move(u)), options(o), setting(MakeSetting()) {}

  UnitSetting MakeSetting();
  absl::Status MakeStore();
  void MakeUnits(const InitializeUnit& initialize);
  void AddUnit(const std::vector<std::pair<std::string, at::Tensor>>& part, bool root);
  Unit& Block(std::size_t block);
  void GatherBlock(std::ptrdiff_t block);
  std::size_t RootFrom(std::size_t unit) const;
  void ExpectUnit(std::size_t unit) const;
  void ExpectBlock(std::ptrdiff_t block) const;
  void BeforeBackward(std::size_t block);
  void OnGradient(std::size_t unit, std::size_t parameter);
  void AdvanceGathers();
  void DropAll();
  at::Tensor FirstParameter() const;

  DataParallelAxes axes;
  std::vector<ParameterUnit> model;
  DataParallelOptions options;
  BufferPool pool;
  UnitSetting setting;
  std::unique_ptr<StateStore> store;  // of masters; null: in memory
  absl::Status status;
  std::vector<std::unique_ptr<Unit>> units;  // of the model, root units in parts
  std::vector<std::size_t> blocks;           // index of each block's unit, in `units`
  std::vector<bool> is_root;                 // by unit
  std::vector<std::size_t> first_unit;       // by unit of the model, and one more
  std::vector<Shard> shards;
  std::unique_ptr<Reductions> reductions;
};

namespace {

// Called by autograd behind each accumulation. It may outlive the engine by one backward.
template <typename Owner>
class GradientHook final : public torch::autograd::PostAccumulateGradHook {
 public:
  GradientHook(std::weak_ptr<Owner> owner, std::size_t unit, std::size_t parameter)
      : owner_(std::move(owner)), unit_(unit), parameter_(parameter) {}
  void operator()(const torch::autograd::Variable&) override {
    if (const std::shared_ptr<Owner> owner = owner_.lock()) owner->OnGradient(unit_, parameter_);
  }

 private:
  std::weak_ptr<Owner> owner_;
  std::size_t unit_, parameter_;
};

// LibTorch's and nanoGPT's custom: matrices decay, biases and norms do not.
bool DecaysByDefault(const std::string&, const at::Tensor& parameter) { return parameter.dim() >= 2; }

using NamedParameters = std::vector<std::pair<std::string, at::Tensor>>;

FlatLayout LayoutOf(const NamedParameters& part, const DataParallelOptions& options, int ranks) {
  std::vector<FlatParameter> parameters;
  for (const auto& [name, parameter] : part) {
    const bool decays = options.decays ? options.decays(name, parameter) : DecaysByDefault(name, parameter);
    parameters.push_back({name, parameter.sizes().vec(), decays});
  }
  return FlatLayout::Make(std::move(parameters), ranks);
}

std::vector<NamedParameters> PartsOf(const ParameterUnit& unit, std::int64_t root_part_bytes) {
  if (!unit.root) return {unit.parameters};
  std::vector<NamedParameters> parts(1);
  for (const auto& parameter : unit.parameters) {
    const bool large = parameter.second.numel() * parameter.second.element_size() >= root_part_bytes;
    large ? parts.push_back({parameter}) : parts[0].push_back(parameter);
  }
  if (parts[0].empty() && parts.size() > 1) parts.erase(parts.begin());
  return parts;
}

}  // namespace

at::Tensor DataParallel::State::FirstParameter() const {
  for (const ParameterUnit& unit : model) {
    if (!unit.parameters.empty()) return unit.parameters[0].second;
  }
  return {};
}

UnitSetting DataParallel::State::MakeSetting() {
  const at::Tensor first = FirstParameter();
  const at::ScalarType type = first.scalar_type();
  const bool same = options.compute_type == at::ScalarType::Undefined;
  const comm::Communicator gather =
      axes.shard.size() > 1 ? axes.shard.Split(0, axes.shard.rank(), axes.shard.name()) : axes.shard;
  return {.gather = gather,
          .reduce = axes.shard,
          .replicate = axes.replicate,
          .strategy = options.strategy,
          .compute_type = same ? type : options.compute_type,
          .master_options = at::TensorOptions(type).device(first.is_meta() ? options.device : first.device()),
          .pool = &pool,
          .offloads_parameters = options.offloads_parameters,
          .store = nullptr,
          .status = &status};
}

absl::Status DataParallel::State::MakeStore() {
  StateStoreOptions place = options.masters_place;
  if (place.place == StatePlace::kMemory) return absl::OkStatus();
  if (!setting.mixed() && !options.offloads_parameters) return absl::OkStatus();
  place.device = setting.master_options.device();
  place.what = setting.mixed() ? "master parameters" : "parameters";
  std::vector<StateSlot> slots;
  for (const ParameterUnit& unit : model) {
    for (const NamedParameters& part : PartsOf(unit, options.root_part_bytes)) {
      slots.push_back({.name = unit.name,
                       .count = LayoutOf(part, options, setting.ranks()).shard_count(),
                       .type = setting.master_options.dtype().toScalarType()});
    }
  }
  PLAIT_ASSIGN_OR_RETURN(store, StateStore::Create(std::move(slots), place));
  pool.Count(store->device_bytes() + store->host_bytes());
  setting.store = store.get();
  return absl::OkStatus();
}

void DataParallel::State::MakeUnits(const InitializeUnit& initialize) {
  for (std::size_t u = 0; u < model.size(); ++u) {
    first_unit.push_back(units.size());
    if (!model[u].root) blocks.push_back(units.size());
    for (const NamedParameters& part : PartsOf(model[u], options.root_part_bytes))
      AddUnit(part, model[u].root);
    if (initialize) initialize(u);
    for (std::size_t i = first_unit[u]; i < units.size(); ++i) {
      status.Update(units[i]->ShareOut());
      shards.push_back({&units[i]->layout(), units[i]->master().tensor(), {}});
    }
  }
  first_unit.push_back(units.size());
  std::vector<Unit*> in_order;
  for (const std::unique_ptr<Unit>& unit : units) in_order.push_back(unit.get());
  const std::size_t few = options.prefetch ? 1 : 0;
  reductions =
      std::make_unique<Reductions>(std::move(in_order), setting.shards_gradients() ? few : units.size());
}

void DataParallel::State::AddUnit(const NamedParameters& part, bool root) {
  std::vector<at::Tensor> parameters;
  for (std::size_t i = 0; i < part.size(); ++i) {
    const at::Tensor& parameter = parameters.emplace_back(part[i].second);
    torch::autograd::impl::set_post_acc_grad_hooks(
        parameter, std::make_unique<GradientHook<State>>(weak_from_this(), units.size(), i));
  }
  units.push_back(std::make_unique<Unit>(&setting, std::move(parameters),
                                         LayoutOf(part, options, setting.ranks()), /*slot=*/units.size()));
  is_root.push_back(root);
}

Unit& DataParallel::State::Block(std::size_t block) {
  PLAIT_CHECK(block < blocks.size()) << "block " << block << " of a model with " << blocks.size();
  return *units[blocks[block]];
}

void DataParallel::State::GatherBlock(std::ptrdiff_t block) {
  if (!options.prefetch || block < 0 || block >= static_cast<std::ptrdiff_t>(blocks.size())) return;
  Block(static_cast<std::size_t>(block)).StartGather();
}

// The first root unit that is `unit` or comes behind it.
std::size_t DataParallel::State::RootFrom(std::size_t unit) const {
  while (unit < units.size() && !is_root[unit]) ++unit;
  return unit;
}

void DataParallel::State::ExpectUnit(std::size_t unit) const {
  if (unit < units.size()) units[unit]->Expect();
}

void DataParallel::State::ExpectBlock(std::ptrdiff_t block) const {
  if (block < 0 || block >= static_cast<std::ptrdiff_t>(blocks.size())) return;
  ExpectUnit(blocks[static_cast<std::size_t>(block)]);
}

void DataParallel::State::BeforeBackward(std::size_t block) {
  const auto before = static_cast<std::ptrdiff_t>(block) - 1;
  Unit& unit = Block(block);
  unit.StartGather();
  unit.WaitWhole();
  if (!options.reshard_after_forward) return;
  GatherBlock(before);
  ExpectBlock(options.prefetch ? before - 1 : before);
}

void DataParallel::State::OnGradient(std::size_t unit, std::size_t parameter) {
  if (units[unit]->Accumulate(parameter)) {
    if (!is_root[unit]) units[unit]->Drop();
    reductions->Complete(unit);
  }
  reductions->Advance();
  AdvanceGathers();
}

void DataParallel::State::AdvanceGathers() {
  for (const std::size_t block : blocks) units[block]->AdvanceGather();
}

void DataParallel::State::DropAll() {
  for (const std::unique_ptr<Unit>& unit : units) unit->Drop();
}

absl::StatusOr<std::unique_ptr<DataParallel>> DataParallel::Create(const DataParallelAxes& axes,
                                                                   std::vector<ParameterUnit> units,
                                                                   const DataParallelOptions& options,
                                                                   const InitializeUnit& initialize) {
  PLAIT_RETURN_IF_ERROR(CheckUnits(axes, units, options, static_cast<bool>(initialize)));
  auto state = std::make_shared<State>(axes, std::move(units), options);
  PLAIT_RETURN_IF_ERROR(AgreeAlongAxes(axes, state->MakeStore()));
  state->MakeUnits(initialize);
  PLAIT_RETURN_IF_ERROR(AgreeAlongAxes(axes, state->status));
  return std::unique_ptr<DataParallel>(new DataParallel(std::move(state)));
}

DataParallel::DataParallel(std::shared_ptr<State> state) : state_(std::move(state)) {}

DataParallel::~DataParallel() {
  for (const ParameterUnit& unit : state_->model) {
    for (const auto& [name, parameter] : unit.parameters) {
      torch::autograd::impl::set_post_acc_grad_hooks(parameter, nullptr);
    }
  }
}

at::Tensor DataParallel::Run(std::size_t block, const BlockForward& forward, const at::Tensor& input) {
  State& state = *state_;
  Unit& unit = state.Block(block);
  const auto behind = static_cast<std::ptrdiff_t>(block) + 1;
  unit.StartGather();
  state.ExpectBlock(behind);
  unit.WaitWhole();
  state.GatherBlock(behind);
  if (state.options.prefetch) state.ExpectBlock(behind + 1);
  at::Tensor output = forward(input);
  state.AdvanceGathers();
  const bool backward_follows = at::GradMode::is_enabled() && output.requires_grad();
  // The last block's backward comes next: it stays.
  const bool stays =
      backward_follows && (!state.options.reshard_after_forward || block + 1 == state.blocks.size());
  if (!stays) unit.Drop();
  if (backward_follows) {
    if (block + 1 == state.blocks.size()) state.ExpectBlock(static_cast<std::ptrdiff_t>(block) - 1);
    output.register_hook([owner = state_->weak_from_this(), block](const at::Tensor&) {
      if (const auto engine = owner.lock()) engine->BeforeBackward(block);
    });
  }
  return output;
}

at::Tensor DataParallel::Forward(const std::function<at::Tensor()>& forward) {
  State& state = *state_;
  for (std::size_t u = state.RootFrom(0); u < state.units.size(); u = state.RootFrom(u + 1)) {
    state.units[u]->StartGather();
    state.ExpectUnit(state.RootFrom(u + 1));
  }
  state.ExpectBlock(0);
  for (std::size_t u = 0; u < state.units.size(); ++u) {
    if (state.is_root[u]) state.units[u]->WaitWhole();
  }
  at::Tensor result = forward();
  if (!at::GradMode::is_enabled() || !result.requires_grad()) state.DropAll();
  return result;
}

void DataParallel::Backward(const at::Tensor& loss, const Pass& pass) {
  State& state = *state_;
  const bool reduces = pass.last || (pass.reduce_each && state.setting.shards_gradients());
  for (const std::unique_ptr<Unit>& unit : state.units) unit->BeginPass();
  state.reductions->Begin(reduces, pass.last);
  loss.backward();
  state.reductions->Finish(state.axes);
  state.DropAll();
  state.ExpectUnit(0);
  for (std::size_t u = 0; u < state.units.size(); ++u) state.shards[u].gradient = state.units[u]->gradient();
}

double DataParallel::GradientNorm() const {
  const at::NoGradGuard no_grad;
  double squares = 0;
  for (const Shard& shard : state_->shards) {
    if (shard.gradient.numel() == 0) continue;
    const double norm = at::linalg_vector_norm(shard.gradient, 2).item<double>();
    squares += norm * norm;
  }
  if (state_->setting.ranks() > 1) {
    state_->setting.reduce.AllReduce(comm::BufferOf(absl::MakeSpan(&squares, 1)));
  }
  return std::sqrt(squares);
}

const std::vector<Shard>& DataParallel::shards() const { return state_->shards; }

absl::Status DataParallel::VisitMaster(std::size_t shard, bool changes, const MasterVisitor& visit) const {
  const at::NoGradGuard no_grad;
  const std::vector<std::unique_ptr<Unit>>& units = state_->units;
  return units[shard]->VisitMaster(changes, [&](const at::Tensor& master) {
    units[(shard + 1) % units.size()]->master().Expect();
    return visit(master);
  });
}

bool DataParallel::masters_stay() const { return state_->store == nullptr; }
at::TensorOptions DataParallel::master_options() const { return state_->setting.master_options; }
const absl::Status& DataParallel::status() const { return state_->status; }

void DataParallel::Publish() {
  state_->DropAll();
  for (const std::unique_ptr<Unit>& unit : state_->units) unit->Publish();
}

void DataParallel::WaitForParameters() {
  for (const std::unique_ptr<Unit>& unit : state_->units) unit->WaitWhole();
}

void DataParallel::VisitWhole(const std::function<void(const ParameterUnit& unit)>& visit) {
  for (std::size_t u = 0; u < state_->model.size(); ++u) {
    const absl::Span<const std::unique_ptr<Unit>> parts =
        absl::MakeConstSpan(state_->units)
            .subspan(state_->first_unit[u], state_->first_unit[u + 1] - state_->first_unit[u]);
    for (const std::unique_ptr<Unit>& part : parts) part->StartGather();
    for (const std::unique_ptr<Unit>& part : parts) part->WaitWhole();
    state_->ExpectUnit(state_->first_unit[u + 1]);
    visit(state_->model[u]);
    for (const std::unique_ptr<Unit>& part : parts) part->Drop();
  }
}

const std::vector<ParameterUnit>& DataParallel::units() const { return state_->model; }
const DataParallelAxes& DataParallel::axes() const { return state_->axes; }
const DataParallelOptions& DataParallel::options() const { return state_->options; }
std::int64_t DataParallel::unexpected_reads() const {
  return state_->store == nullptr ? 0 : state_->store->unexpected_reads();
}
std::int64_t DataParallel::peak_bytes() const { return state_->pool.peak_bytes(); }

}  // namespace plait::parallel
