// What a rank of a mesh needs at most: states by formulas (memory_plan.h), buffers of unsharded units by replaying who
// holds them (gather_count.h), activations by replaying the schedule with measured parts (pass_memory.h).
//
//   const MemoryPlan memory = RankMemory(plan, /*pp_rank=*/0, **passes.Of(plan.run));
//   memory.total_bytes();
//
// Within 5 % of a dry run of the mesh (tests/plan:memory_estimate_test). Local.
#ifndef PLAIT_PARALLEL_PLAN_RANK_MEMORY_H_
#define PLAIT_PARALLEL_PLAN_RANK_MEMORY_H_

#include "parallel/plan/memory_plan.h"
#include "parallel/plan/pass_memory.h"
#include "parallel/plan/traffic.h"

namespace plait::parallel {

// `bytes`: of plan.run.
MemoryPlan RankMemory(const StepPlan& plan, int pp_rank, const PassBytes& bytes);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PLAN_RANK_MEMORY_H_
