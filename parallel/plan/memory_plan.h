// How much memory a rank will need, before any of it is allocated.
//
//   MemoryPlanRequest request = {.units = PlanUnits(model.units(), /*shard_ranks=*/4),   // meta tensors do
//                                .strategy = Strategy::kFsdp,
//                                .shard_ranks = 4,
//                                .micro_batch = 12,
//                                .activation_bytes_per_sample = 5 << 20};
//   const MemoryPlan plan = PlanMemory(request);
//   std::cout << MemoryPlanText(plan);
//   PLAIT_RETURN_IF_ERROR(world.Agree(CheckFits(plan, AvailableMemory(), ranks_on_this_node)));
//
// Bytes of a rank, with P parameters (padding included), N ranks along the shard axis, e bytes of a master
// parameter, c of one that computes, S the parameters of a rank's share (P / N; P for ddp or N = 1):
//
//   parameters        c P; c = e: masters are a part of them. fsdp, N > 1: nothing; but c S where masters of
//                     another type live elsewhere and parameters do not
//   master            e S where c differs from e or parameters are sharded; in a file: two buffers of the
//                     largest unit's share, in whole blocks of the file
//   gradients         e P; zero2 and fsdp, N > 1: e S, and e P more while micro-batches are added up whole
//                     reproducible: with L leaves, log2(L) times e P more, and e of the root units for what
//                     a tied parameter gets from the prologue, 1 + log2(L) times
//   moments           2 e S (AdamW, Adam), e S (SGD with momentum); in a file: two such buffers
//   unsharded units   zero2: whole gradients e of the units whose reduction is on its way and the one that
//                     backward is in; fsdp: the same, and parameters c of the root units and two blocks
//   checkpoint        where checkpoints are saved beside training: the copy that is written, e S and the
//                     moments; values that live in a file take that once more
//   fsdp with its parameters offloaded shards them for N = 1 too
//   activations       bytes per sample times micro-batch, and what does not grow with it; or those of a pass
//                     without backward, where that takes more
//
// Upper bounds that a run reaches (data_parallel.h's peak_bytes() is `parameters` to `unsharded units` without
// moments). Not counted: the program and LibTorch (some 200 MB), message buffers, data. Local.
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
  std::int64_t count = 0;       // with it
  bool root = false;
};

// Sizes of the flat buffers that the engine will make.
std::vector<PlannedUnit> PlanUnits(const std::vector<models::ParameterUnit>& units, int shard_ranks);

struct MemoryPlanRequest {
  std::vector<PlannedUnit> units = {};
  Strategy strategy = Strategy::kDdp;
  int replicate_ranks = 1, shard_ranks = 1;
  at::ScalarType master_type = at::kFloat;
  at::ScalarType compute_type = at::kFloat;
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  bool momentum = false;  // SGD
  OffloadTarget moments_offload = OffloadTarget::kMemory;
  OffloadTarget masters_offload = OffloadTarget::kMemory;  // these two as in DataParallelOptions
  bool offloads_parameters = false;
  bool reshard_after_forward = true, prefetch = true;
  bool adds_unsharded_gradients = false;  // micro-batches that reduce once, in the last pass
  int leaves = 0;  // micro-batches of this rank, where sums are reproducible (DataParallelOptions)
  bool saves_asynchronously = false;
  std::int64_t micro_batch = 1;  // samples in a pass, on this rank
  std::int64_t activation_bytes_per_sample = 0;
  std::int64_t fixed_activation_bytes = 0;
  std::int64_t evaluation_bytes = 0;  // of the largest pass without backward
  // Of unsharded units, where it is known (a dry run); -1: the most that there may be.
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
  std::int64_t save_bytes = 0;  // the copy of an asynchronous save, on the rank that has most of it
  // Of the engine's flat buffers: what peak_bytes() is held against.
  std::int64_t buffer_bytes() const {
    return parameter_bytes + master_bytes + gradient_bytes + working_bytes;
  }
  std::int64_t total_bytes() const { return buffer_bytes() + moment_bytes + activation_bytes + save_bytes; }
};

MemoryPlan PlanMemory(const MemoryPlanRequest& request);

// A table for people: a line per kind of memory, and the total of a rank.
std::string MemoryPlanText(const MemoryPlan& plan);

// Samples in the largest micro-batch whose plan is at most `bytes`; 0 if not even one fits, and the largest
// integer where activations take nothing.
std::int64_t LargestMicroBatch(const MemoryPlan& plan, std::int64_t bytes);

// ResourceExhausted, in one line, where the plan exceeds this rank's part of what the node has: needed,
// there, and the largest micro-batch that fits, or which strategy would need less. OK where nothing is known
// of the node. Differs between nodes: agree on it.
absl::Status CheckFits(const MemoryPlan& plan, const NodeMemory& node, int ranks_on_node);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PLAN_MEMORY_PLAN_H_
