// Placement planners: decide from a census which experts get replicas on which ranks.
//
//   const PlannerOptions options = {.policy = PlacementPolicy::kShadow, .replica_slots = 6, .cost = cost};
//   const ExpertPlacement placement = PlanPlacement(options, census);
//
//   home      no replicas
//   shadow    those that pay off by the cost model: each of them reduces the predicted time (the idea of He et al.,
//             "FasterMoE", PPoPP 2022, section 4.1, for single ranks, and with gradients and micro-batches included)
//   eplb      fills all slots: the expert with the most rows per copy gets one more, again and again; then copies are
//             packed, largest first, on the ranks with the fewest rows (DeepSeek-V3, arXiv:2412.19437, section 3.4, but
//             homes do not move)
//   balanced  adds replicas greedily until no rank computes more than ceil(total / ranks) rows, or (1 +
//             overload_tolerance) times the mean, or the slots are used up
//
// Homes never move: parameters stay where they are, and only replicas are placed. Rows are distributed by
// row_balance.h: kLocalFirst for `shadow`, else kEqual. Deterministic: the same arguments give the same plan.
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
  int replica_slots = 0;          // maximum number of replicas per rank
  MoeCostModel cost = {};         // shadow
  double overload_tolerance = 0;  // balanced: a rank may compute (1 + this) times the mean
};

// INVALID_ARGUMENT, one line, for negative slots or tolerance and, for `shadow`, an invalid cost model.
absl::Status Validate(const PlannerOptions& options);
// "home", "shadow", "eplb" or "balanced"; INVALID_ARGUMENT, listing them, for another text.
absl::Status ParsePlacementPolicy(const std::string& text, PlacementPolicy* policy);
const char* Name(PlacementPolicy policy);

// How a policy's placements distribute rows; for ShareRows, if a placement is used with a later census.
Sharing SharingOf(PlacementPolicy policy);

// The result has the shares of all rows. `previous`: the placement of an earlier micro-batch of the same step, whose
// replicas are kept in the same slots because their weights are already there; null: none. Invalid options are a
// programming error.
ExpertPlacement PlanPlacement(const PlannerOptions& options, const Census& census,
                              const ExpertPlacement* previous = nullptr);

// All replica slots are used, by the experts that follow the rank's own; all rows go home. For memory estimates.
ExpertPlacement FullPlacement(const PlannerOptions& options, int ranks, int experts);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_PLANNER_H_
