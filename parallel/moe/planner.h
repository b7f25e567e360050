// Placement planners: which experts get replicas on which ranks, from a census.
//
//   const PlannerOptions options = {.policy = PlacementPolicy::kShadow, .replica_slots = 6, .cost = cost};
//   const ExpertPlacement placement = PlanPlacement(options, census);
//
//   home      no replicas
//   shadow    those that pay by the cost model: each of them lowers the predicted time (the idea of He et al.,
//             "FasterMoE", PPoPP 2022, section 4.1, for single ranks, with gradients and micro-batches counted)
//   eplb      all slots: the expert with most rows per copy gets one more, then copies are packed, largest first, on the
//             ranks with fewest rows (DeepSeek-V3, arXiv:2412.19437, section 3.4; homes stay, their rows count)
//   balanced  no rank computes more than total / ranks rows, rounded up, through as few replicas as a greedy finds and
//             the slots allow
//
// Homes never move: parameters stay where they are, and only replicas are placed. Rows are shared by row_balance.h:
// kLocalFirst for `shadow`, else kEqual. Deterministic: ranks that call it with the same arguments get the same plan.
// On 4 ranks with 256 experts `shadow` takes 0.1 ms, on 8 ranks 1 ms; its time grows with the cube of the ranks. The
// others take 0.02 ms to 0.1 ms. Local.
#ifndef PLAIT_PARALLEL_MOE_PLANNER_H_
#define PLAIT_PARALLEL_MOE_PLANNER_H_

#include <string>

#include "absl/status/status.h"
#include "parallel/moe/cost_model.h"
#include "parallel/moe/placement.h"
#include "parallel/moe/row_balance.h"

namespace plait::moe {

enum class PlacementPolicy { kHome, kShadow, kEplb, kBalanced };

struct PlannerOptions {
  PlacementPolicy policy = PlacementPolicy::kHome;
  int replica_slots = 0;          // most replicas on a rank
  MoeCostModel cost = {};         // shadow
  double overload_tolerance = 0;  // balanced: a rank may have 1 + this times the mean
};

// INVALID_ARGUMENT, one line: negative slots or tolerance, a cost model that `shadow` cannot use.
absl::Status Validate(const PlannerOptions& options);
// "home", "shadow", "eplb", "balanced"; INVALID_ARGUMENT that lists them for another text.
absl::Status ParsePlacementPolicy(const std::string& text, PlacementPolicy* policy);
const char* Name(PlacementPolicy policy);

// How a policy's placements share rows: for a placement that is used with a later census (ShareRows).
Sharing SharingOf(PlacementPolicy policy);

// With the shares of all rows. `previous`, of the micro-batch before in the same step: its replicas have their weights, so that they
// stay, in the same slots; null: none.
ExpertPlacement PlanPlacement(const PlannerOptions& options, const Census& census,
                              const ExpertPlacement* previous = nullptr);

// Every replica slot taken, by the experts that follow the rank's own; rows at home. What a memory plan assumes.
ExpertPlacement FullPlacement(const PlannerOptions& options, int ranks, int experts);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_PLANNER_H_
