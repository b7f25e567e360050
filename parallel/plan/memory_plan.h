// Predicts how much memory a rank needs, before any of it is allocated.
//
//   MemoryPlanRequest request = {.units = PlanUnits(model.units(), /*shard_ranks=*/4),   // may be meta tensors
//                                .strategy = Strategy::kFsdp,
//                                .shard_ranks = 4,
//                                .micro_batch = 12,
//                                .activation_bytes_per_sample = 5 << 20};
//   const MemoryPlan plan = PlanMemory(request);
//   std::cout << MemoryPlanText(plan);
//   PLAIT_RETURN_IF_ERROR(world.Agree(CheckFits(plan, AvailableMemory(), ranks_on_this_node)));
//
// Bytes per rank, summed over its units, each with P parameters (padding included) and N ranks along its shard axis (of
// experts fewer); e bytes per element of the masters' type, c of the compute type, and S = P / N parameters per shard
// (P for N = 1, as for ddp):
//
//   parameters        c P; if c = e, masters are views of them. fsdp, N > 1: 0; but c S if masters of another type
//                     are offloaded and parameters are not
//   master            e S in mixed precision or if parameters are sharded; in a file: two buffers of the largest
//                     unit's shard, in whole blocks of the file
//   gradients         e P; zero2 and fsdp, N > 1: e S, and another e P if unsharded gradients are accumulated over
//                     micro-batches. Reproducible sums over L leaves: another floor(log2 L) e P, and 1 + floor(log2 L)
//                     times e bytes per parameter of the root units, for tied parameters
//   moments           2 e S (AdamW, Adam, Muon), e S (SGD with momentum); in a file: two buffers as for masters
//   unsharded units   zero2: unsharded gradients of the units that are being reduced and of the one that backward is
//                     in; fsdp: the same, and unsharded parameters of the root units and two blocks (one without
//                     prefetch, all without reshard_after_forward)
//   checkpoint        asynchronous saves: the copy that is written, e S and the moments; states that are offloaded
//                     count twice
//   activations       micro-batch x bytes per sample + fixed bytes; or those of evaluation, if that needs more
//
// fsdp with offloaded parameters shards them for N = 1, too.
//
// Upper bounds that runs reach. DataParallel::peak_bytes() covers `parameters` to `unsharded units`, without moments.
// Not counted: the program and LibTorch (about 200 MB), message buffers, data. Local.
#ifndef PLAIT_PARALLEL_PLAN_MEMORY_PLAN_H_
#define PLAIT_PARALLEL_PLAN_MEMORY_PLAN_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "parallel/offload/state_store.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/plan/available_memory.h"
#include "parallel/sharding/data_parallel.h"
#include "parallel/sharding/strategy.h"

namespace plait::parallel {

struct PlannedUnit {
  std::string name;
  std::int64_t parameters = 0;  // elements, without padding
  std::int64_t count = 0;       // elements, with padding
  bool root = false;
  int shard_ranks = 1;  // along its shard axis
};

// Sizes of the flat buffers of the engine, padded as if each unit had only one (parts are padded separately).
// `expert_shard_ranks`: along ep_shard, for units that are sharded over it (parallel/moe/expert_mesh.h).
std::vector<PlannedUnit> PlanUnits(const std::vector<models::ParameterUnit>& units, int shard_ranks,
                                   int expert_shard_ranks = 1);

struct MemoryPlanRequest {
  std::vector<PlannedUnit> units = {};
  Strategy strategy = Strategy::kDdp;
  int replicate_ranks = 1, shard_ranks = 1;  // along dp_replicate and dp_shard, for messages
  at::ScalarType master_type = at::kFloat;
  at::ScalarType compute_type = at::kFloat;
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  bool momentum = false;  // SGD
  OffloadTarget moments_offload = OffloadTarget::kMemory;
  OffloadTarget masters_offload = OffloadTarget::kMemory;  // this and the next as in DataParallelOptions
  bool offloads_parameters = false;
  bool reshard_after_forward = true, prefetch = true;
  bool adds_unsharded_gradients = false;  // several micro-batches, reduced once, with the last
  int leaves = 0;  // reproducible sums (DataParallelOptions): micro-batches of this rank; else 0
  bool saves_asynchronously = false;
  std::int64_t micro_batch = 1;  // samples per pass on this rank
  std::int64_t activation_bytes_per_sample = 0;
  std::int64_t fixed_activation_bytes = 0;
  std::int64_t evaluation_bytes = 0;  // activations of the largest pass without backward
  // Bytes of unsharded units, if known (from a dry run); -1: an upper bound is used.
  std::int64_t working_bytes = -1;
};

struct MemoryPlan {
  MemoryPlanRequest request;
  std::int64_t model_parameters = 0;
  std::int64_t parameter_bytes = 0;
  std::int64_t master_bytes = 0;       // in memory
  std::int64_t master_file_bytes = 0;  // on the disk
  std::int64_t gradient_bytes = 0;
  std::int64_t moment_bytes = 0;       // in memory
  std::int64_t moment_file_bytes = 0;  // on the disk
  std::int64_t working_bytes = 0;      // unsharded units
  std::int64_t activation_bytes = 0;
  std::int64_t save_bytes = 0;  // the copy of an asynchronous save, on the rank that has the most
  // The engine's flat buffers; bounds DataParallel::peak_bytes().
  std::int64_t buffer_bytes() const {
    return parameter_bytes + master_bytes + gradient_bytes + working_bytes;
  }
  std::int64_t total_bytes() const { return buffer_bytes() + moment_bytes + activation_bytes + save_bytes; }
};

MemoryPlan PlanMemory(const MemoryPlanRequest& request);

// A table with a line per kind of memory, and the total of a rank.
std::string MemoryPlanText(const MemoryPlan& plan);

// Samples in the largest micro-batch whose training step fits into `bytes`; 0 if not even one fits, INT64_MAX if
// activations take nothing. evaluation_bytes are ignored.
std::int64_t LargestMicroBatch(const MemoryPlan& plan, std::int64_t bytes);

// RESOURCE_EXHAUSTED, in one line, if the plan exceeds this rank's part of the node's memory: needed and available
// bytes, and the largest micro-batch that fits, or which strategy would need less. OK if the node's memory is unknown.
// Local; nodes may differ: call Communicator::Agree on the result.
absl::Status CheckFits(const MemoryPlan& plan, const NodeMemory& node, int ranks_on_node);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PLAN_MEMORY_PLAN_H_
