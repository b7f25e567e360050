#include "parallel/moe/planner.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "parallel/moe/policies.h"

namespace plait::moe {
namespace {

constexpr PlacementPolicy kPolicies[] = {PlacementPolicy::kHome, PlacementPolicy::kShadow,
                                         PlacementPolicy::kEplb, PlacementPolicy::kBalanced};

ExpertPlacement WithoutShares(const ExpertPlacement& placement) {
  ExpertPlacement copy(placement.ranks(), placement.experts());
  for (int rank = 0; rank < placement.ranks(); ++rank) {
    for (const int expert : placement.slots(rank).subspan(placement.home_experts(rank)))
      copy.AddReplica(expert, rank);
  }
  return copy;
}

}  // namespace

const char* Name(PlacementPolicy policy) {
  switch (policy) {
    case PlacementPolicy::kHome:
      return "home";
    case PlacementPolicy::kShadow:
      return "shadow";
    case PlacementPolicy::kEplb:
      return "eplb";
    case PlacementPolicy::kBalanced:
      return "balanced";
  }
  return "";
}

absl::Status ParsePlacementPolicy(const std::string& text, PlacementPolicy* policy) {
  for (const PlacementPolicy candidate : kPolicies) {
    if (text != Name(candidate)) continue;
    *policy = candidate;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown placement policy '", text, "'; expected home, shadow, eplb or balanced"));
}

absl::Status Validate(const PlannerOptions& options) {
  if (options.replica_slots < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("replica slots per rank: ", options.replica_slots, "; expected 0 or more"));
  }
  if (!(options.overload_tolerance >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("overload tolerance is ", options.overload_tolerance, "; expected 0 or more"));
  }
  return options.policy == PlacementPolicy::kShadow ? Validate(options.cost) : absl::OkStatus();
}

// `shadow` adds only replicas that pay off, and they do so by the rows that they keep local.
Sharing SharingOf(PlacementPolicy policy) {
  return policy == PlacementPolicy::kShadow ? Sharing::kLocalFirst : Sharing::kEqual;
}

ExpertPlacement PlanPlacement(const PlannerOptions& options, const Census& census,
                              const ExpertPlacement* previous) {
  PLAIT_CHECK_OK(Validate(options));
  PLAIT_CHECK(previous == nullptr ||
              (previous->ranks() == census.ranks() && previous->experts() == census.experts()))
      << "a previous placement of " << previous->experts() << " experts on " << previous->ranks()
      << " ranks, a census of " << census.experts() << " and " << census.ranks();
  ExpertPlacement placement =
      previous == nullptr ? ExpertPlacement(census.ranks(), census.experts()) : WithoutShares(*previous);
  switch (options.policy) {
    case PlacementPolicy::kHome:
      break;
    case PlacementPolicy::kShadow:
      AddShadows(options, census, placement);
      break;
    case PlacementPolicy::kEplb:
      AddEplbReplicas(options, census, placement);
      break;
    case PlacementPolicy::kBalanced:
      AddBalancingReplicas(options, census, placement);
      break;
  }
  ShareRows(census, SharingOf(options.policy), placement);
  return placement;
}

ExpertPlacement FullPlacement(const PlannerOptions& options, int ranks, int experts) {
  ExpertPlacement placement(ranks, experts);
  if (options.policy == PlacementPolicy::kHome) return placement;
  for (int rank = 0; rank < ranks; ++rank) {
    const int next = placement.first_home_expert(rank + 1);
    const int count = std::min(options.replica_slots, experts - placement.home_experts(rank));
    for (int i = 0; i < count; ++i) placement.AddReplica((next + i) % experts, rank);
  }
  return placement;
}

}  // namespace plait::moe
