// Peak memory of a rank: states by formulas (memory_plan.h), buffers of unsharded units by replaying when they are held
// (gather_count.h), activations by replaying the schedule with the measured bytes of each part (pass_memory.h).
//
//   const MemoryPlan memory = RankMemory(plan, /*pp_rank=*/0, **passes.Of(plan.run));
//   memory.total_bytes();
//
// Within 5.5 % of a dry run of the mesh (tests/plan:memory_estimate_test). Local.
#ifndef PLAIT_PARALLEL_PLAN_RANK_MEMORY_H_
#define PLAIT_PARALLEL_PLAN_RANK_MEMORY_H_

#include "parallel/plan/memory_plan.h"
#include "parallel/plan/pass_memory.h"
#include "parallel/plan/traffic.h"

namespace plait::parallel {

// `bytes`: PassMemory::Of(plan.run).
MemoryPlan RankMemory(const StepPlan& plan, int pp_rank, const PassBytes& bytes);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PLAN_RANK_MEMORY_H_
