#include "parallel/sharding/engine.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "parallel/sharding/creation.h"
#include "parallel/sharding/reproducible_norm.h"

namespace plait::parallel {

using models::ParameterRole;
using models::ParameterSpec;
using models::ParameterUnit;

namespace {

// Called by autograd after each accumulation. It may outlive the engine by one backward.
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

bool IsRoot(const ParameterUnit& unit) { return unit.block == ParameterUnit::kRoot; }

bool IsTrained(const ParameterSpec& parameter) { return parameter.role == ParameterRole::kTrained; }

// Adds the sum of squares. On the CPU LibTorch's norm of float32 is inaccurate, 2 % off for 10^8 elements: there, in
// double, part by part, so that the copies are small.
void AddSquares(const at::Tensor& values, const at::Tensor& squares) {
  const auto add = [&squares](const at::Tensor& norm) { squares.add_(norm * norm); };
  const std::int64_t count = values.numel();
  if (count > 0 && !values.is_cpu()) return add(at::linalg_vector_norm(values, 2).to(at::kDouble));
  constexpr std::int64_t kPart = std::int64_t{1} << 16;
  for (std::int64_t begin = 0; begin < count; begin += kPart) {
    const at::Tensor part = values.narrow(0, begin, std::min(kPart, count - begin));
    add(at::linalg_vector_norm(part, 2, at::OptionalIntArrayRef(), /*keepdim=*/false, at::kDouble));
  }
}

}  // namespace

DataParallel::Engine::Engine(const comm::DeviceMesh& m, std::vector<ParameterUnit> u,
                             const DataParallelOptions& o)
    : mesh(m), model(std::move(u)), options(o) {
  const at::Tensor& first = FirstTrained();
  master_options_ =
      at::TensorOptions(first.scalar_type()).device(first.is_meta() ? options.device : first.device());
  for (const ParameterUnit& unit : model) ContextOf(unit);
}

DataParallel::Engine::~Engine() {
  following.reset();  // reshards units, which need their contexts
  for (const ParameterUnit& unit : model) {
    for (const ParameterSpec& parameter : unit.parameters) {
      if (IsTrained(parameter)) torch::autograd::impl::set_post_acc_grad_hooks(parameter.tensor, nullptr);
    }
  }
}

const at::Tensor& DataParallel::Engine::FirstTrained() const {
  for (const ParameterUnit& unit : model) {
    for (const ParameterSpec& parameter : unit.parameters) {
      if (IsTrained(parameter)) return parameter.tensor;
    }
  }
  PLAIT_CHECK(false) << "a model without trained parameters";
  std::abort();
}

// Units of the same axes share their communicators.
UnitContext* DataParallel::Engine::ContextOf(const ParameterUnit& unit) {
  std::unique_ptr<UnitContext>& context = contexts_[{unit.replicate_axis, unit.shard_axis}];
  if (context != nullptr) return context.get();
  const comm::Communicator shard = AxisOrSelf(mesh, unit.shard_axis);
  const comm::Communicator gather = shard.size() > 1 ? shard.Split(0, shard.rank(), shard.name()) : shard;
  const comm::Communicator replicate = AxisOrSelf(mesh, unit.replicate_axis);
  const comm::Communicator replicate_gather = options.reproducible && replicate.size() > 1
                                                  ? replicate.Split(0, replicate.rank(), replicate.name())
                                                  : replicate;
  const at::ScalarType type = master_options_.dtype().toScalarType();
  const bool same = options.compute_type == at::ScalarType::Undefined;
  context = std::make_unique<UnitContext>(UnitContext{.mesh = &mesh,
                                                      .gather = gather,
                                                      .reduce = shard,
                                                      .replicate = replicate,
                                                      .replicate_gather = replicate_gather,
                                                      .strategy = options.strategy,
                                                      .compute_type = same ? type : options.compute_type,
                                                      .master_options = master_options_,
                                                      .pool = &pool,
                                                      .offloads_parameters = options.offloads_parameters,
                                                      .reproducible = options.reproducible,
                                                      .store = nullptr,
                                                      .status = &status});
  return context.get();
}

absl::Status DataParallel::Engine::MakeStore() {
  StateStoreOptions place = options.masters_offload;
  if (place.target == OffloadTarget::kMemory) return absl::OkStatus();
  const bool mixed = contexts_.begin()->second->mixed();
  if (!mixed && !options.offloads_parameters) return absl::OkStatus();
  place.device = master_options_.device();
  place.what = mixed ? "master parameters" : "parameters";
  std::vector<StateSlot> slots;
  for (const ParameterUnit& unit : model) {
    for (const UnitPart& part : PartsOf(unit, options.strategy, options.part_bytes)) {
      slots.push_back({.name = unit.name,
                       .count = LayoutOf(part, ContextOf(unit)->ranks()).shard_count(),
                       .type = master_options_.dtype().toScalarType()});
    }
  }
  PLAIT_ASSIGN_OR_RETURN(store, StateStore::Create(std::move(slots), place));
  pool.Count(store->device_bytes() + store->host_bytes());
  for (auto& [axes, context] : contexts_) context->store = store.get();
  return absl::OkStatus();
}

void DataParallel::Engine::MakeUnits(const InitializeUnit& initialize) {
  for (std::size_t u = 0; u < model.size(); ++u) {
    first_unit.push_back(units.size());
    for (const UnitPart& part : PartsOf(model[u], options.strategy, options.part_bytes))
      AddUnit(model[u], part);
    AddReplicated(model[u]);
    if (initialize) initialize(u);
    for (std::size_t i = first_unit[u]; i < units.size(); ++i) {
      status.Update(units[i]->ShardInitialValues());
      shards[i].master = units[i]->master().tensor();
    }
  }
  first_unit.push_back(units.size());
  for (const ReplicatedTensor& replicated : replicated_tensors) BroadcastReplicated(replicated);
  begun_holds_.assign(units.size(), 0);
  std::vector<Unit*> all;
  for (const std::unique_ptr<Unit>& unit : units) all.push_back(unit.get());
  // Backward passes go through the blocks from behind; within one, units come in the order of their use.
  std::vector<std::int64_t> order;
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block)
    order.insert(order.end(), block->rbegin(), block->rend());
  order.insert(order.end(), roots.rbegin(), roots.rend());
  std::vector<comm::Communicator> axes;
  for (const auto& [names, context] : contexts_) {
    axes.push_back(context->reduce);
    axes.push_back(context->replicate);
  }
  const bool shards_gradients = std::any_of(contexts_.begin(), contexts_.end(),
                                            [](const auto& c) { return c.second->shards_gradients(); });
  const std::size_t few = options.prefetch ? 1 : 0;
  reductions = std::make_unique<Reductions>(std::move(all), std::move(order), std::move(axes),
                                            shards_gradients ? few : units.size());
}

void DataParallel::Engine::AddUnit(const ParameterUnit& unit, const UnitPart& part) {
  const std::size_t index = units.size();
  const UnitContext* context = ContextOf(unit);
  for (std::size_t i = 0; i < part.size(); ++i) {
    torch::autograd::impl::set_post_acc_grad_hooks(
        part[i]->tensor, std::make_unique<GradientHook<Engine>>(weak_from_this(), index, i));
    by_parameter[part[i]->tensor.unsafeGetTensorImpl()] = {index, i};
  }
  units.push_back(
      std::make_unique<Unit>(context, unit.name, part, LayoutOf(part, context->ranks()), /*slot=*/index));
  if (IsRoot(unit)) {
    roots.push_back(index);
  } else {
    blocks.resize(std::max<std::size_t>(blocks.size(), unit.block + 1));
    blocks[unit.block].push_back(index);
  }
  Shard shard = {.layout = &units.back()->layout(),
                 .rank = context->gather.rank(),
                 .of_block = !IsRoot(unit),
                 .gather = &context->gather,
                 .parameters = part};
  for (const ParameterSpec* parameter : part) shard.primary.push_back(IsPrimary(unit, *parameter));
  shards.push_back(std::move(shard));
}

// Frozen parameters and buffers stay unsharded; those on the meta device are allocated here.
void DataParallel::Engine::AddReplicated(const ParameterUnit& unit) {
  for (const ParameterSpec& parameter : unit.parameters) {
    if (IsTrained(parameter)) continue;
    if (parameter.tensor.is_meta()) {
      const at::TensorOptions on_device = parameter.tensor.options().device(options.device);
      models::Materialize(parameter.tensor, at::zeros(parameter.tensor.sizes(), on_device));
    }
    const bool first_shard = AxisOrSelf(mesh, unit.shard_axis).rank() == 0;
    replicated_tensors.push_back({&unit, &parameter, first_shard && IsPrimary(unit, parameter)});
  }
}

bool DataParallel::Engine::IsPrimary(const ParameterUnit& unit, const ParameterSpec& parameter) const {
  std::vector<std::string> axes = parameter.placement.replicated;
  axes.insert(axes.end(), parameter.placement.partial.begin(), parameter.placement.partial.end());
  axes.push_back(unit.replicate_axis);
  return std::all_of(axes.begin(), axes.end(),
                     [&](const std::string& axis) { return AxisOrSelf(mesh, axis).rank() == 0; });
}

void DataParallel::Engine::BroadcastReplicated(const ReplicatedTensor& replicated) {
  const at::NoGradGuard no_grad;
  std::vector<std::string> axes = replicated.parameter->placement.replicated;
  axes.push_back(replicated.unit->shard_axis);
  axes.push_back(replicated.unit->replicate_axis);
  // Copies of a tied one on two pipeline stages.
  const std::vector<std::string>& partial = replicated.parameter->placement.partial;
  if (replicated.parameter->role == ParameterRole::kFrozen)
    axes.insert(axes.end(), partial.begin(), partial.end());
  at::Tensor values = replicated.parameter->tensor;
  for (const std::string& name : axes) {
    const comm::Communicator axis = AxisOrSelf(mesh, name);
    if (axis.size() > 1) comm::Broadcast(axis, values, /*root=*/0);
  }
}

void DataParallel::Engine::BroadcastBuffers() {
  for (const ReplicatedTensor& replicated : replicated_tensors) {
    if (replicated.parameter->role == ParameterRole::kBuffer) BroadcastReplicated(replicated);
  }
}

DataParallel::Engine::Holds::Holds(Engine& engine, const UnitIndices& units)
    : engine_(engine), units_(units) {
  for (std::size_t i = 0; i < units_.size(); ++i) {
    engine_.units[units_[i]]->AddHold();
    if (i + 1 < units_.size()) engine_.PrefetchUnit(units_[i + 1]);
  }
}

DataParallel::Engine::Holds::~Holds() {
  for (const std::size_t unit : units_) engine_.units[unit]->DropHold();
}

UnitIndices DataParallel::Engine::UnitsOfBlocks(std::size_t block, std::size_t count) const {
  PLAIT_CHECK(count > 0 && block + count <= blocks.size())
      << "blocks " << block << " to " << block + count - 1 << " of a model with " << blocks.size();
  UnitIndices all;
  for (std::size_t b = block; b < block + count; ++b) {
    all.insert(all.end(), blocks[b].begin(), blocks[b].end());
  }
  return all;
}

void DataParallel::Engine::Wait(const UnitIndices& indices) {
  for (const std::size_t unit : indices) units[unit]->WaitUnsharded();
}

bool DataParallel::Engine::IsInStage(std::ptrdiff_t block) const {
  const StageBlocks all = {.first = 0, .count = blocks.size()};
  const StageBlocks& now = stage.has_value() ? *stage : all;
  return block >= static_cast<std::ptrdiff_t>(now.first) &&
         block < static_cast<std::ptrdiff_t>(now.first + now.count);
}

std::ptrdiff_t DataParallel::Engine::OrFollowing(std::ptrdiff_t block) const {
  if (IsInStage(block)) return block;
  return stage.has_value() ? stage->following : -1;
}

void DataParallel::Engine::HoldFollowing(const UnitIndices& held) {
  if (!stage.has_value() || stage->following < 0) return;
  const UnitIndices& of_block = blocks[static_cast<std::size_t>(stage->following)];
  const bool in_memory = !of_block.empty() && std::find(held.begin(), held.end(), of_block[0]) != held.end();
  if (options.prefetch || in_memory) following = std::make_unique<const Holds>(*this, of_block);
}

void DataParallel::Engine::GatherBlock(std::ptrdiff_t block) {
  if (!options.prefetch || block < 0 || block >= static_cast<std::ptrdiff_t>(blocks.size())) return;
  for (const std::size_t unit : blocks[static_cast<std::size_t>(block)]) units[unit]->StartAllGather();
}

void DataParallel::Engine::PrefetchBlock(std::ptrdiff_t block) const {
  if (block < 0 || block >= static_cast<std::ptrdiff_t>(blocks.size())) return;
  const UnitIndices& of_block = blocks[static_cast<std::size_t>(block)];
  if (!of_block.empty()) PrefetchUnit(of_block[0]);
}

void DataParallel::Engine::PrefetchUnit(std::size_t unit) const {
  if (unit < units.size()) units[unit]->Prefetch();
}

void DataParallel::Engine::AdvanceGathers() {
  for (const UnitIndices& block : blocks) {
    for (const std::size_t unit : block) units[unit]->AdvanceAllGather();
  }
}

void DataParallel::Engine::ReshardUnheld() {
  for (const std::unique_ptr<Unit>& unit : units) unit->ReshardIfUnheld();
}

void DataParallel::Engine::RecordUse(UnitIndices indices, std::ptrdiff_t block, bool held,
                                     const std::vector<at::Tensor>& outputs) {
  if (held) {
    for (const std::size_t unit : indices) units[unit]->AddHold();
  }
  const std::int64_t id = next_use_++;
  uses_[id] = {.units = std::move(indices), .block = block, .held = held};
  const auto begun = std::make_shared<bool>(false);  // by the gradient of one of several outputs
  for (const at::Tensor& output : outputs) {
    if (!output.defined() || !output.requires_grad()) continue;
    output.register_hook([owner = weak_from_this(), id, begun](const at::Tensor&) {
      const std::shared_ptr<Engine> engine = owner.lock();
      if (engine != nullptr && !std::exchange(*begun, true)) engine->BeginUse(id);
    });
  }
}

void DataParallel::Engine::CheckInBackward(const char* what) const {
  TORCH_CHECK(in_backward, what,
              " outside DataParallel::Backward: call DataParallel::Backward(loss) instead of ",
              "loss.backward(), so that gradients are reduced over the ranks");
}

void DataParallel::Engine::BeginUse(std::int64_t id) {
  CheckInBackward("a backward pass");
  const auto found = uses_.find(id);
  TORCH_CHECK(found != uses_.end(),
              "backward of a forward pass that was recorded before the last optimizer step: its parameters "
              "have changed since");
  const Use use = std::move(found->second);
  uses_.erase(found);
  for (const std::size_t unit : use.units) {
    if (!use.held) units[unit]->AddHold();
    ++begun_holds_[unit];
    units[unit]->ExpectGradients();
  }
  Wait(use.units);
  if (use.block < 0) return;
  following.reset();
  const std::ptrdiff_t next = use.block - 1;
  const bool at_end = !IsInStage(next);
  if (at_end) HoldFollowing(use.units);
  if (!options.reshard_after_forward) return;
  if (!at_end) GatherBlock(next);
  PrefetchBlock(OrFollowing(options.prefetch && !at_end ? next - 1 : next));
}

void DataParallel::Engine::End(std::size_t unit) {
  for (; begun_holds_[unit] > 0; --begun_holds_[unit]) units[unit]->DropHold();
}

void DataParallel::Engine::EndUses() {
  for (std::size_t unit = 0; unit < units.size(); ++unit) End(unit);
  ReshardUnheld();
}

void DataParallel::Engine::ForgetUses() {
  uses_.clear();
  following.reset();
  begun_holds_.assign(units.size(), 0);
}

void DataParallel::Engine::OnGradient(std::size_t unit, std::size_t parameter) {
  CheckInBackward("a gradient");
  if (units[unit]->Accumulate(parameter)) {
    const bool is_root = std::binary_search(roots.begin(), roots.end(), unit);
    if (!is_root) End(unit);
    reductions->Complete(unit);
  }
  reductions->Advance();
  AdvanceGathers();
}

void DataParallel::Engine::SumPartialGradients() {
  if (!std::exchange(partial, false)) return;
  const at::NoGradGuard no_grad;
  for (const comm::MeshAxis& axis : mesh.axes()) {
    if (axis.size == 1) continue;
    std::vector<at::Tensor> gradients;
    for (const std::unique_ptr<Unit>& unit : units) {
      for (at::Tensor& gradient : unit->PartialGradients(axis.name)) gradients.push_back(std::move(gradient));
    }
    if (gradients.empty()) continue;
    at::Tensor packed = gradients.size() == 1 ? gradients[0] : at::cat(gradients);
    comm::AllReduce(mesh.axis(axis.name), packed);
    if (gradients.size() == 1) continue;
    std::int64_t offset = 0;
    for (at::Tensor& gradient : gradients) {
      gradient.copy_(packed.narrow(0, offset, gradient.numel()));
      offset += gradient.numel();
    }
  }
}

// Squares are added on the device and read once; the ranks' sums are added in the order of ranks: the bits of an MPI
// reduction would depend on which ranks share a node.
double DataParallel::Engine::GradientNorm() const {
  const at::NoGradGuard no_grad;
  if (options.reproducible) return ReproducibleNorm(shards, mesh.world());
  at::Tensor squares = at::zeros({1}, master_options_.dtype(at::kDouble));
  for (const Shard& shard : shards) {
    const bool all = std::find(shard.primary.begin(), shard.primary.end(), false) == shard.primary.end();
    if (all) {
      AddSquares(shard.gradient, squares);
      continue;
    }
    for (const FlatSlice& slice : shard.layout->Slices(shard.rank)) {
      if (!shard.primary[slice.parameter]) continue;
      AddSquares(shard.gradient.narrow(0, slice.shard_offset, slice.end - slice.begin), squares);
    }
  }
  const at::Tensor of_ranks = mesh.world().size() > 1 ? comm::AllGather(mesh.world(), squares) : squares;
  if (of_ranks.is_meta()) return 0;
  const at::Tensor read = of_ranks.cpu();
  const auto* const begin = read.const_data_ptr<double>();
  return std::sqrt(std::accumulate(begin, begin + read.numel(), 0.0));
}

}  // namespace plait::parallel
