// The policies of planner.h: each adds replicas to `placement`, on ranks with fewer than options.replica_slots.
#ifndef PLAIT_PARALLEL_MOE_POLICIES_H_
#define PLAIT_PARALLEL_MOE_POLICIES_H_

#include "parallel/moe/placement.h"
#include "parallel/moe/planner.h"

namespace plait::moe {

void AddShadows(const PlannerOptions& options, const Census& census, ExpertPlacement& placement);
void AddEplbReplicas(const PlannerOptions& options, const Census& census, ExpertPlacement& placement);
void AddBalancingReplicas(const PlannerOptions& options, const Census& census, ExpertPlacement& placement);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_POLICIES_H_
