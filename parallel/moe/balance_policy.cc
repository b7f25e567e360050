#include <algorithm>
#include <cmath>

#include "parallel/moe/policies.h"
#include "parallel/moe/row_balance.h"

namespace plait::moe {
namespace {

// A replica that takes as many rows as one can from a rank with more than `most` rows to one with fewer; of equal ones that
// with most rows of its own. -1: no slot would help.
struct Spill {
  int expert = -1, rank = -1;
  std::int64_t rows = 0, own = 0;
};

void ConsiderRank(const Census& census, const RowBalance& balance, std::int64_t most, int from, int to,
                  Spill& best) {
  const std::int64_t excess = balance.loads()[from].rows - most, room = most - balance.loads()[to].rows;
  if (excess <= 0 || room <= 0) return;
  for (int expert = 0; expert < census.experts(); ++expert) {
    if (balance.Has(to, expert)) continue;
    const std::int64_t rows = std::min({balance.rows(from, expert), excess, room}),
                       own = census.at(to, expert);
    if (rows > best.rows || (rows == best.rows && rows > 0 && own > best.own)) best = {expert, to, rows, own};
  }
}

Spill LargestSpill(const Census& census, const RowBalance& balance, std::int64_t most, int slots) {
  Spill best;
  for (int to = 0; to < census.ranks(); ++to) {
    if (balance.loads()[to].replicas >= slots) continue;
    for (int from = 0; from < census.ranks(); ++from) ConsiderRank(census, balance, most, from, to, best);
  }
  return best;
}

}  // namespace

void AddBalancingReplicas(const PlannerOptions& options, const Census& census, ExpertPlacement& placement) {
  const std::int64_t total = census.total(), ranks = census.ranks();
  const auto tolerated = static_cast<std::int64_t>(
      std::floor((1 + options.overload_tolerance) * static_cast<double>(total) / ranks));
  const std::int64_t most = std::max((total + ranks - 1) / ranks, tolerated);
  RowBalance balance(census, placement, Sharing::kEqual);
  for (Spill spill; (spill = LargestSpill(census, balance, most, options.replica_slots)).expert >= 0;) {
    balance.AddReplica(spill.expert, spill.rank);
    placement.AddReplica(spill.expert, spill.rank);
  }
}

}  // namespace plait::moe
