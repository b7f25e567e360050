#include "tools/gpt_training/sharded_gpt.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include <string>
#include <utility>
#include <vector>

#include "base/seed.h"
#include "base/status_macros.h"
#include "parallel/activation_checkpoint/activation_checkpoint.h"

namespace plait::gpt_training {
namespace {

// Without the root.
std::vector<std::string> BlockNames(const std::vector<parallel::ParameterUnit>& units) {
  std::vector<std::string> names;
  for (std::size_t unit = 1; unit < units.size(); ++unit) names.push_back(units[unit].name);
  return names;
}

void SeedParameters(std::uint64_t seed) {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  generator.set_current_seed(base::DeriveSeed(seed, "parameters"));
}

}  // namespace

gpt::GptOptions OptionsOf(const Config& config, std::int64_t vocabulary_size) {
  return {.vocab_size = vocabulary_size,
          .block_size = config.block_size,
          .n_layer = config.n_layer,
          .n_head = config.n_head,
          .n_embd = config.n_embd,
          .dropout = config.dropout,
          .bias = config.bias};
}

at::ScalarType MasterType(const Config& config) {
  return config.dtype == "float64" ? at::kDouble : at::kFloat;
}

at::ScalarType ComputeType(const Config& config) {
  if (config.dtype == "bfloat16") return at::kBFloat16;
  if (config.dtype == "float16") return at::kHalf;
  return MasterType(config);
}

gpt::Gpt MetaModel(const Config& config, const gpt::GptOptions& options) {
  return gpt::Gpt(options, at::TensorOptions(at::kMeta).dtype(MasterType(config)));
}

std::vector<parallel::ParameterUnit> UnitsOf(const gpt::Gpt& model) {
  std::vector<parallel::ParameterUnit> units;
  for (const models::ParameterUnit& unit : model.units()) {
    units.push_back({.name = unit.name, .parameters = {}, .root = units.empty()});
    for (const models::ParameterSpec& parameter : unit.parameters) {
      units.back().parameters.emplace_back(parameter.name, parameter.tensor);
    }
  }
  return units;
}

absl::Status ShardedGpt::Assemble(const Config& config, const comm::DeviceMesh& mesh,
                                  const InitializeFrom& initialize) {
  PLAIT_ASSIGN_OR_RETURN(const parallel::Strategy strategy, parallel::ParseStrategy(config.strategy));
  std::vector<parallel::ParameterUnit> units = UnitsOf(model_);
  PLAIT_ASSIGN_OR_RETURN(
      const parallel::CheckpointPolicy policy,
      parallel::CheckpointPolicy::Parse(config.activation_checkpointing, BlockNames(units)));
  SeedParameters(config.seed);
  const auto initialize_unit = [&](std::size_t unit) {
    if (initialize) return initialize(model_, unit);
    model_.ResetParameters(unit);
  };
  const parallel::StateStoreOptions place = training_program::StatePlaceOf(config.offload);
  PLAIT_ASSIGN_OR_RETURN(engine_, parallel::DataParallel::Create(
                                      {mesh.axis("dp_replicate"), mesh.axis("dp_shard")}, std::move(units),
                                      {.strategy = strategy,
                                       .reshard_after_forward = config.reshard_after_forward,
                                       .prefetch = config.prefetch,
                                       .compute_type = ComputeType(config),
                                       .masters_place = place,
                                       .offloads_parameters = config.offload.parameters},
                                      initialize_unit));
  const auto run = policy.Around(
      [engine = engine_.get()](std::size_t block, const parallel::BlockForward& forward,
                               const at::Tensor& input) { return engine->Run(block, forward, input); });
  run_ = [this, run](std::size_t block, const models::BlockState& input,
                     const models::BlockContext& context) {
    const auto forward = [layer = model_.blocks()[block], context](const at::Tensor& x) {
      return layer->Forward({.hidden = x}, context).hidden;
    };
    return models::BlockState{.hidden = run(block, forward, input.hidden)};
  };
  PLAIT_ASSIGN_OR_RETURN(optimizer_,
                         parallel::ShardedOptimizer::Create(*engine_,
                                                            {.kind = parallel::OptimizerKind::kAdamW,
                                                             .lr = config.learning_rate,
                                                             .beta1 = config.beta1,
                                                             .beta2 = config.beta2,
                                                             .weight_decay = config.weight_decay},
                                                            place));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ShardedGpt>> ShardedGpt::Create(const Config& config, gpt::Gpt model,
                                                               const comm::DeviceMesh& mesh,
                                                               const InitializeFrom& initialize) {
  std::unique_ptr<ShardedGpt> sharded(new ShardedGpt(std::move(model)));
  PLAIT_RETURN_IF_ERROR(sharded->Assemble(config, mesh, initialize));
  return sharded;
}

}  // namespace plait::gpt_training
