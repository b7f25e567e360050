#include "tools/training/sharded_model.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/seed.h"
#include "base/status_macros.h"
#include "models/moe/distribute.h"
#include "models/moe/moe_mlp.h"
#include "models/stackable_block.h"
#include "parallel/activation_checkpoint/activation_checkpoint.h"
#include "parallel/context/data_mesh.h"
#include "parallel/context/local_batch.h"
#include "parallel/moe/expert_mesh.h"
#include "parallel/tensor/parallelize.h"
#include "parallel/training_state/training_state.h"

namespace plait::training {
namespace {

int RanksAlong(const comm::DeviceMesh& mesh, const char* axis) {
  return mesh.Has(axis) ? mesh.axis(axis).size() : 1;
}

// "transformer.h.3" of transformer.h.3.ln_1.weight, transformer.h.3.ln_1.bias, ...
std::string CommonName(const std::vector<const models::ParameterSpec*>& parameters) {
  std::string name = parameters.empty() ? "" : parameters[0]->name;
  for (const models::ParameterSpec* parameter : parameters) {
    while (parameter->name != name && !absl::StartsWith(parameter->name, name + ".")) {
      const std::size_t dot = name.rfind('.');
      if (dot == name.npos) return "root";
      name.resize(dot);
    }
  }
  return name;
}

absl::Status CheckSequences(const Settings& settings, const comm::DeviceMesh& mesh, std::int64_t heads) {
  const int cp = RanksAlong(mesh, "cp"), tp = RanksAlong(mesh, "tp");
  if (cp == 1) return absl::OkStatus();
  if (heads == 0) return absl::UnimplementedError("--mesh: this model has no sequences to split (cp)");
  if (settings.context_kind() == context_parallel::ContextKind::kRing || heads % (cp * tp) == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("--context-attention=ulysses: ", heads, " heads for ",
                                                 cp * tp,
                                                 " ranks of cp and tp; expected a multiple, or ring"));
}

// This rank's units that have parameters.
std::vector<parallel::RankUnit> UnitsOf(const TrainedModel& trained, const comm::DeviceMesh& mesh,
                                        const PipelinePlan& plan) {
  std::vector<models::ParameterUnit> all = trained.model->units();
  for (models::ParameterUnit& unit : all) {
    const bool on_one_rank = plan.layers.has_value() && unit.block != models::ParameterUnit::kRoot;
    for (models::ParameterSpec& spec : unit.parameters) {
      spec.decays = spec.decays || trained.decays_all;
      if (mesh.Has("lp") && !on_one_rank) spec.placement.replicated.push_back("lp");
    }
  }
  std::vector<parallel::RankUnit> units = plan.Units(all);
  std::erase_if(units, [](const parallel::RankUnit& unit) { return unit.unit.parameters.empty(); });
  return units;
}

std::vector<models::ParameterUnit> EngineUnits(const std::vector<parallel::RankUnit>& units) {
  std::vector<models::ParameterUnit> result;
  for (const parallel::RankUnit& unit : units) result.push_back(unit.unit);
  return result;
}

// Materializes, while a unit is initialized, the parameters that this rank's part of the unit lacks: the others then
// draw the same values as in the whole unit.
class MemoryForTheRest {
 public:
  MemoryForTheRest(const models::ParameterUnit& whole, const models::ParameterUnit& part) {
    for (const models::ParameterSpec& spec : whole.parameters) {
      const auto is_it = [&spec](const models::ParameterSpec& own) { return own.name == spec.name; };
      if (std::any_of(part.parameters.begin(), part.parameters.end(), is_it)) continue;
      const at::Device device = part.parameters[0].tensor.device();
      rest_.emplace_back(spec.tensor, spec.tensor.detach());
      models::Materialize(spec.tensor, at::zeros(spec.tensor.sizes(), spec.tensor.options().device(device)));
    }
  }
  ~MemoryForTheRest() {
    for (const auto& [parameter, before] : rest_) models::Materialize(parameter, before);
  }
  MemoryForTheRest(const MemoryForTheRest&) = delete;
  MemoryForTheRest& operator=(const MemoryForTheRest&) = delete;

 private:
  const at::NoGradGuard no_grad_;
  std::vector<std::pair<at::Tensor, at::Tensor>> rest_;
};

// Wraps a block of the model that a layer-parallel solver or activation checkpointing runs. ForwardMany calls the
// model's own blocks directly: autograd does not record these calls, so that there are no activations to checkpoint.
class RunnerBlock final : public models::Block, public models::StackableBlock {
 public:
  RunnerBlock(std::size_t index, models::BlockRunner run, const models::BlockModel& model)
      : index_(index), run_(std::move(run)), model_(model) {}
  models::BlockState Forward(const models::BlockState& input, const models::BlockContext& context) override {
    return run_(index_, input, context);
  }
  std::vector<at::Tensor> Parameters() const override { return model_.blocks()[index_]->Parameters(); }
  bool PrefersMany(at::Device device) const override {
    const auto* const stackable = dynamic_cast<const models::StackableBlock*>(model_.blocks()[index_].get());
    return stackable != nullptr && stackable->PrefersMany(device);
  }
  std::vector<at::Tensor> ForwardMany(absl::Span<const models::BlockCall> calls) override {
    auto* const stackable = dynamic_cast<models::StackableBlock*>(model_.blocks()[index_].get());
    if (stackable == nullptr) return {};
    std::vector<models::BlockCall> of_model(calls.begin(), calls.end());
    for (models::BlockCall& call : of_model) {
      call.block = model_.blocks()[static_cast<const RunnerBlock&>(*call.block).index_].get();
    }
    return stackable->ForwardMany(of_model);
  }

 private:
  std::size_t index_;
  models::BlockRunner run_;
  const models::BlockModel& model_;
};

// Parameters of root units that blocks use: shared by the solver's steps.
mgrit::LayerParallel::TiedParameters TiedIn(const models::BlockModel& model) {
  std::set<const at::TensorImpl*> of_blocks;
  for (const auto& block : model.blocks()) {
    for (const at::Tensor& parameter : block->Parameters()) of_blocks.insert(parameter.unsafeGetTensorImpl());
  }
  mgrit::LayerParallel::TiedParameters tied;
  for (const models::ParameterUnit& unit : model.units()) {
    if (unit.block != models::ParameterUnit::kRoot) continue;
    for (const models::ParameterSpec& spec : unit.parameters) {
      if (of_blocks.count(spec.tensor.unsafeGetTensorImpl()) > 0) tied.emplace_back(spec.name, spec.tensor);
    }
  }
  return tied;
}

absl::StatusOr<parallel::CheckpointPolicy> PolicyOf(const Settings& settings,
                                                    const models::BlockModel& model) {
  std::vector<std::string> names(model.blocks().size());
  for (const models::ParameterUnit& unit : model.units()) {
    if (unit.block == models::ParameterUnit::kRoot) continue;
    std::string& name = names[static_cast<std::size_t>(unit.block)];
    if (name.empty()) name = unit.name;  // behind it come units of parts of the block, as of experts
  }
  absl::StatusOr<parallel::CheckpointPolicy> policy =
      parallel::CheckpointPolicy::Parse(settings.activation_checkpointing, names);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(policy.status(), "--activation-checkpointing"));
  return policy;
}

// A dry run on the meta device writes no files.
parallel::StateStoreOptions StateOffload(const Settings& settings, at::Device device) {
  return device.is_meta() ? parallel::StateStoreOptions{} : settings.state_offload();
}

// A seed per unit, so that a rank with some of the units draws the same values as a rank with all.
void SeedParameters(std::uint64_t seed, const std::string& unit) {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  generator.set_current_seed(base::DeriveSeed(seed, "parameters/" + unit));
}

at::Tensor CopyTo(at::Device device, const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.device() == device) return tensor;
  const bool pinned = !device.is_cpu() && !device.is_meta() && tensor.is_cpu();
  return (pinned ? tensor.pin_memory() : tensor)
      .to(tensor.options().device(device), /*non_blocking=*/pinned, /*copy=*/false);
}

bool IsFinite(const at::Tensor& tensor) { return at::isfinite(tensor).all().item<bool>(); }

// Name of the first parameter of the shard with a NaN or an infinity; empty: none.
std::string NonFiniteName(const parallel::Shard& shard, const at::Tensor& values) {
  if (!values.defined()) return "";
  for (const parallel::FlatSlice& slice : shard.layout->Slices(shard.rank)) {
    if (!IsFinite(values.narrow(0, slice.shard_offset, slice.end - slice.begin))) {
      return shard.layout->parameters()[slice.parameter].name;
    }
  }
  return "";
}

absl::Status SplitOverTensorAxis(const Settings& settings, const comm::DeviceMesh& mesh,
                                 const TrainedModel& trained) {
  if (RanksAlong(mesh, "tp") == 1) return absl::OkStatus();
  auto* const splittable = dynamic_cast<tensor_parallel::SplittableModel*>(trained.model);
  if (splittable == nullptr) {
    return absl::UnimplementedError("--mesh: the layers of this model cannot be split (tp)");
  }
  const int ranks = RanksAlong(mesh, "tp");
  return base::Prefixed(
      tensor_parallel::Parallelize(*splittable, mesh, tensor_parallel::DefaultPlan(*splittable, ranks),
                                   {.sequence_parallel = settings.sequence_parallel}),
      "--mesh");
}

// Null if the model has no experts.
moe::ExpertModel* WithExperts(const TrainedModel& trained) {
  auto* const model = dynamic_cast<moe::ExpertModel*>(trained.model);
  return model == nullptr || model->moe_layers().empty() ? nullptr : model;
}

// The mesh over which parameters are sharded: cp is folded into a data axis, and experts have axes of their own.
absl::StatusOr<comm::DeviceMesh> ParameterMesh(const Settings& settings, const comm::DeviceMesh& mesh,
                                               const TrainedModel& trained) {
  PLAIT_ASSIGN_OR_RETURN(const comm::DeviceMesh data_mesh,
                         context_parallel::DataMesh(mesh, settings.parsed_strategy()));
  if (WithExperts(trained) == nullptr) return data_mesh;
  return moe::ExpertMesh(data_mesh, settings.expert_ranks());
}

absl::Status SpreadExperts(const Settings& settings, const comm::DeviceMesh& mesh,
                           const TrainedModel& trained) {
  moe::ExpertModel* const model = WithExperts(trained);
  if (model == nullptr) {
    if (settings.expert_ranks() == 1) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("--mesh=", settings.mesh, ": the model has no experts to spread over ep"));
  }
  if (settings.reproducible) {
    return absl::InvalidArgumentError(
        "--reproducible: not with experts, whose sums follow from where they are");
  }
  if (const int lp = RanksAlong(mesh, "lp"); settings.lp.Solves(lp)) {
    return absl::InvalidArgumentError(
        absl::StrCat(lp > 1 ? absl::StrCat("lp=", lp, " in --mesh") : "--force-lp",
                     ": not with experts, whose losses the solver does not know"));
  }
  PLAIT_ASSIGN_OR_RETURN(const comm::DeviceMesh expert_mesh, ParameterMesh(settings, mesh, trained));
  return base::Prefixed(moe::DistributeExperts(*model, expert_mesh, RanksAlong(mesh, "cp") > 1), "--mesh");
}

}  // namespace

absl::Status SplitLayers(const Settings& settings, const comm::DeviceMesh& mesh,
                         const TrainedModel& trained) {
  PLAIT_RETURN_IF_ERROR(CheckSequences(settings, mesh, trained.attention_heads));
  PLAIT_RETURN_IF_ERROR(SplitOverTensorAxis(settings, mesh, trained));
  return SpreadExperts(settings, mesh, trained);
}

absl::StatusOr<parallel::MemoryPlanRequest> MemoryRequest(const Settings& settings,
                                                          const comm::DeviceMesh& mesh, at::Device device,
                                                          const TrainedModel& trained) {
  PLAIT_ASSIGN_OR_RETURN(const PipelinePlan plan, PlanPipeline(settings, mesh, *trained.model));
  const int data_ranks = mesh.axis("dp_replicate").size() * mesh.axis("dp_shard").size();
  // Ranks along cp share parameters as data-parallel ones do.
  int replicas = mesh.axis("dp_replicate").size(), shards = mesh.axis("dp_shard").size();
  (settings.parsed_strategy() == parallel::Strategy::kDdp ? replicas : shards) *= RanksAlong(mesh, "cp");
  PLAIT_ASSIGN_OR_RETURN(const moe::ExpertAxes experts,
                         moe::ExpertAxesOf(replicas, shards, settings.expert_ranks()));
  return parallel::MemoryPlanRequest(
      {.units = parallel::PlanUnits(EngineUnits(UnitsOf(trained, mesh, plan)), shards, experts.shard),
       .strategy = settings.parsed_strategy(),
       .replicate_ranks = replicas,
       .shard_ranks = shards,
       .master_type = settings.master_type(),
       .compute_type = settings.compute_type(),
       .optimizer = trained.optimizer.kind,
       .momentum = trained.optimizer.momentum != 0,
       .moments_offload = settings.state_offload().target,
       .masters_offload = settings.state_offload().target,
       .offloads_parameters = settings.offload_params,
       .reshard_after_forward = settings.reshard_after_forward,
       .prefetch = settings.prefetch,
       .adds_unsharded_gradients = settings.MicroBatches(data_ranks) > 1 && !settings.reduce_each_micro_batch,
       .leaves = settings.reproducible ? settings.MicroBatches(data_ranks) : 0,
       // The copy that is being written is in the host's memory.
       .saves_asynchronously = device.is_cpu() && !settings.checkpoint_dir.empty(),
       .micro_batch = settings.SamplesPerRank(data_ranks),
       .activation_bytes_per_sample = trained.activation_bytes_per_sample,
       .fixed_activation_bytes = trained.fixed_activation_bytes,
       .evaluation_bytes = trained.evaluation_bytes});
}

absl::Status ShardedModel::CreateEngine(const Settings& settings, const PipelinePlan& plan) {
  const std::vector<parallel::RankUnit> units = UnitsOf(trained_, mesh_, plan);
  const std::vector<models::ParameterUnit> all = trained_.model->units();
  absl::Status initialized;
  const auto initialize = [&](std::size_t unit) {
    const std::size_t index = units[unit].index;
    const MemoryForTheRest rest(all[index], units[unit].unit);
    SeedParameters(settings.seed, all[index].name);
    if (!trained_.initialize) return trained_.model->ResetParameters(index);
    if (initialized.ok()) initialized = trained_.initialize(index);
  };
  PLAIT_ASSIGN_OR_RETURN(const comm::DeviceMesh parameter_mesh, ParameterMesh(settings, mesh_, trained_));
  PLAIT_ASSIGN_OR_RETURN(const comm::DeviceMesh mesh,
                         parallel::WithEnds(parameter_mesh, plan.schedule.rank_of_stage));
  PLAIT_ASSIGN_OR_RETURN(engine_, parallel::DataParallel::Create(
                                      mesh, EngineUnits(units),
                                      {.strategy = settings.parsed_strategy(),
                                       .reshard_after_forward = settings.reshard_after_forward,
                                       .prefetch = settings.prefetch,
                                       .compute_type = settings.compute_type(),
                                       .reproducible = settings.reproducible,
                                       .device = device_,
                                       .masters_offload = StateOffload(settings, device_),
                                       .offloads_parameters = settings.offload_params && !device_.is_meta()},
                                      initialize));
  return mesh_.world().Agree(initialized);
}

absl::Status ShardedModel::Assemble(const Settings& settings) {
  PLAIT_ASSIGN_OR_RETURN(const parallel::CheckpointPolicy policy, PolicyOf(settings, *trained_.model));
  PLAIT_ASSIGN_OR_RETURN(const PipelinePlan plan, PlanPipeline(settings, mesh_, *trained_.model));
  MakeLayerParallel(settings, plan, policy);
  // The recomputation of a program's own solver would continue what the first pass of a measurement has not.
  if (layer_parallel_ == nullptr && solver() != nullptr && settings.activation_checkpointing != "none" &&
      settings.lp.bias_limit > 0 && settings.lp.bias_reference == "iteration") {
    return absl::InvalidArgumentError(
        "--lp-bias-reference=iteration: not with --activation-checkpointing here; expected serial, or none");
  }
  PLAIT_RETURN_IF_ERROR(CreateEngine(settings, plan));
  if (RanksAlong(mesh_, "cp") > 1) {
    context_ = context_parallel::ContextAxis(mesh_.axis("cp"), settings.context_kind());
  }
  parallel::StateStoreOptions moments_offload = StateOffload(settings, device_);
  moments_offload.device = device_;
  PLAIT_ASSIGN_OR_RETURN(optimizer_,
                         parallel::ShardedOptimizer::Create(*engine_, trained_.optimizer, moments_offload));
  std::vector<std::shared_ptr<models::Block>> blocks = trained_.model->blocks();
  for (std::size_t i = 0; trained_.run_block && i < blocks.size(); ++i) {
    blocks[i] = std::make_shared<RunnerBlock>(i, trained_.run_block, *trained_.model);
  }
  // A solver checkpoints activations itself (LayerParallelOptions::recomputes), as it differentiates each step
  // separately and several times.
  const parallel::CheckpointPolicy around =
      layer_parallel_ == nullptr ? policy : parallel::CheckpointPolicy();
  forward_ = [around, blocks](std::size_t block, const models::BlockState& input,
                              const models::BlockContext& context) {
    return around.Forward(block, blocks[block], input, context);
  };
  PLAIT_ASSIGN_OR_RETURN(pipeline_, parallel::PipelineExecutor::Create(
                                        *engine_, *trained_.model, plan.pp, plan.schedule, plan.stages,
                                        {.forward = forward_,
                                         .solve = SolveOf(plan),
                                         .reduce_every_micro_batch = settings.reduce_each_micro_batch}));
  return absl::OkStatus();
}

// While parameters are on the meta device, without values to compare: blocks of a model share none.
void ShardedModel::MakeLayerParallel(const Settings& settings, const PipelinePlan& plan,
                                     const parallel::CheckpointPolicy& policy) {
  if (!plan.layers.has_value()) return;
  const auto steps = static_cast<std::int64_t>(trained_.model->blocks().size());
  const auto run = [this](std::size_t block, const models::BlockState& input,
                          const models::BlockContext& context) { return forward_(block, input, context); };
  const auto block_of = [&](std::int64_t step) {
    return std::make_shared<RunnerBlock>(static_cast<std::size_t>(step), run, *trained_.model);
  };
  neighbours_ = {mesh_.axis("lp"), plan.layers->rank_before, plan.layers->rank_behind};
  mgrit::LayerParallelOptions options = settings.lp.Options();
  if (policy.count() > 0) {
    options.recomputes = [policy](std::int64_t step) { return policy.Picks(static_cast<std::size_t>(step)); };
  }
  layer_parallel_ = std::make_unique<mgrit::LayerParallel>(
      mesh_.axis("lp"), block_of, steps, static_cast<double>(steps), options, TiedIn(*trained_.model));
}

parallel::BlockSolve ShardedModel::SolveOf(const PipelinePlan& plan) {
  if (layer_parallel_ == nullptr) return {};
  return {.first = static_cast<std::size_t>(plan.layers->first),
          .count = static_cast<std::size_t>(plan.layers->count),
          .forward = [this](const models::BlockState& input, const models::BlockContext& context) {
            PLAIT_CHECK(!input.auxiliary_loss.defined()) << "a layer-parallel model with an auxiliary loss";
            return models::BlockState{layer_parallel_->Forward(input.hidden, context)};
          }};
}

mgrit::LayerParallel* ShardedModel::solver() {
  return trained_.solver ? trained_.solver() : layer_parallel_.get();
}

models::BlockRunner ShardedModel::ThroughEngine() {
  PLAIT_CHECK(has_all_blocks()) << "a pass over blocks that other ranks have";
  return [this](std::size_t block, const models::BlockState& input, const models::BlockContext& context) {
    return engine_->Run(
        block, [&](const models::BlockState& state) { return forward_(block, state, context); }, input);
  };
}

absl::StatusOr<std::unique_ptr<ShardedModel>> ShardedModel::Create(const Settings& settings,
                                                                   const comm::DeviceMesh& mesh,
                                                                   at::Device device,
                                                                   const TrainedModel& trained) {
  if (settings.reproducible && !device.is_cpu() && !device.is_meta()) {
    return absl::InvalidArgumentError(
        "--reproducible: expected --device=cpu, whose kernels have one order of sums");
  }
  // Each rank along lp computes the gradients of the parameters at the ends of the model, which are not summed over lp:
  // cuDNN may add up those of convolutions in any order.
  if (RanksAlong(mesh, "lp") > 1) at::globalContext().setDeterministicCuDNN(true);
  std::unique_ptr<ShardedModel> sharded(new ShardedModel(mesh, device, trained));
  const absl::Status assembled = sharded->Assemble(settings);
  if (sharded->engine_ != nullptr) sharded->engine_->WaitForParameters();
  PLAIT_RETURN_IF_ERROR(assembled);
  return sharded;
}

models::Batch ShardedModel::OnDevice(const models::Batch& whole) const {
  const bool is_part = whole.sequence.axis != nullptr;
  return CopyToDevice(is_part ? whole
                              : context_parallel::LocalBatch(context_, whole, trained_.tokens_of_sample));
}

models::Batch ShardedModel::CopyToDevice(const models::Batch& batch) const {
  models::Batch moved = batch;
  moved.inputs = CopyTo(device_, batch.inputs);
  moved.targets = CopyTo(device_, batch.targets);
  moved.sequence.positions = CopyTo(device_, batch.sequence.positions);
  const at::Tensor& targets = batch.targets;
  if (!device_.is_cpu() && targets.defined() && targets.is_cpu() && moved.valid_targets < 0) {
    moved.valid_targets = targets.ge(0).sum().item<std::int64_t>();
  }
  return moved;
}

absl::Status ShardedModel::AddPenalty(double loss_scale) {
  if (trained_.time_tikhonov == 0) return absl::OkStatus();
  PLAIT_CHECK(stages() == 1) << "regularisation in time with blocks on several stages";
  const absl::Status added =
      parallel::AddTimeTikhonov(*engine_, trained_.time_tikhonov * loss_scale, neighbours_);
  return engine_->masters_resident() ? added : mesh_.world().Agree(added);
}

parallel::StepResult ShardedModel::Step(const parallel::StepOptions& options) {
  if (const absl::Status added = AddPenalty(options.loss_scale); !added.ok()) return {.status = added};
  const parallel::StepResult result = optimizer_->Step(options);
  trained_.model->EndStep(/*updated=*/!result.skipped && result.status.ok());
  return result;
}

void ShardedModel::Forward(const std::function<void(const models::BlockRunner& run)>& forward) {
  engine_->Forward([&] {
    forward(ThroughEngine());
    return at::zeros({});
  });
}

absl::Status ShardedModel::status() const {
  return mesh_.world().Agree(base::Prefixed(engine_->status(), "--offload"));
}

std::vector<std::string> ShardedModel::UnitNames() const {
  std::vector<std::string> names;
  for (const parallel::Shard& shard : engine_->shards()) names.push_back(CommonName(shard.parameters));
  return names;
}

std::string ShardedModel::FirstNonFinite() const {
  const moe::ExpertModel* const with_experts = WithExperts(trained_);
  for (const moe::MoeMlp* layer :
       with_experts == nullptr ? std::vector<moe::MoeMlp*>() : with_experts->moe_layers()) {
    const std::int64_t tokens = layer->load_so_far().not_finite;
    if (tokens > 0)
      return absl::StrCat("logits of the router of layer ", layer->layer(), " for ", tokens, " tokens");
  }
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
