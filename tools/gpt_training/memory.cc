#include "tools/gpt_training/memory.h"

#include <string>
#include <vector>

#include "c10/core/ScalarType.h"
#include "parallel/activation_checkpoint/activation_checkpoint.h"
#include "tools/gpt_training/model_report.h"
#include "tools/gpt_training/sharded_gpt.h"

namespace plait::gpt_training {
namespace {

std::int64_t CheckpointedBlocks(const Config& config, const std::vector<parallel::ParameterUnit>& units) {
  std::vector<std::string> blocks;
  for (std::size_t unit = 1; unit < units.size(); ++unit) blocks.push_back(units[unit].name);
  const auto policy = parallel::CheckpointPolicy::Parse(config.activation_checkpointing, blocks);
  return policy.ok() ? static_cast<std::int64_t>(policy->count()) : 0;
}

}  // namespace

parallel::MemoryPlan PlanOf(const Config& config, const gpt::Gpt& model, const comm::DeviceMesh& mesh) {
  const std::vector<parallel::ParameterUnit> units = UnitsOf(model);
  const int shard_ranks = mesh.axis("dp_shard").size(), ranks = mesh.world().size();
  const auto element = static_cast<std::int64_t>(c10::elementSize(ComputeType(config)));
  return parallel::PlanMemory(
      {.units = parallel::PlanUnits(units, shard_ranks),
       .strategy = parallel::ParseStrategy(config.strategy).value_or(parallel::Strategy::kDdp),
       .replicate_ranks = mesh.axis("dp_replicate").size(),
       .shard_ranks = shard_ranks,
       .master_type = MasterType(config),
       .compute_type = ComputeType(config),
       .moments_place = training_program::StatePlaceOf(config.offload).place,
       .masters_place = training_program::StatePlaceOf(config.offload).place,
       .offloads_parameters = config.offload.parameters,
       .reshard_after_forward = config.reshard_after_forward,
       .prefetch = config.prefetch,
       .adds_whole_gradients = config.gradient_accumulation_steps > 1 && !config.reduce_each_micro_batch,
       .micro_batch = MicroBatchOfRank(config, ranks),
       .activation_bytes_per_sample =
           ActivationBytesPerSample(model.options(), element, CheckpointedBlocks(config, units))});
}

parallel::NodeMemory MemoryOfHost(const Config& config, int ranks_on_host) {
  if (config.memory_limit_bytes <= 0) return parallel::AvailableMemory();
  return {.bytes = static_cast<std::int64_t>(config.memory_limit_bytes * ranks_on_host),
          .limited_by = "--memory-limit"};
}

}  // namespace plait::gpt_training
