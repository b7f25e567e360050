// How often fsdp gathers each unit of a rank in a step: simulates the engine's holds
// (parallel/sharding/data_parallel.h). Local.
#ifndef PLAIT_PARALLEL_PLAN_GATHER_COUNT_H_
#define PLAIT_PARALLEL_PLAN_GATHER_COUNT_H_

#include <vector>

#include "parallel/pipeline/schedule.h"
#include "parallel/pipeline/stage_split.h"

namespace plait::parallel {

struct GatherCount {
  int roots = 0;
  std::vector<int> blocks = {};  // of the rank, in order
  int most_blocks = 0;           // unsharded at the same time, at most
};

// For rank `rank` of the schedule. `reshard` and `prefetch`: DataParallelOptions.
GatherCount CountGathers(const Schedule& schedule, const std::vector<StageRange>& stages, int rank,
                         bool reshard, bool prefetch);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PLAN_GATHER_COUNT_H_
