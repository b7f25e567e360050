#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "parallel/moe/policies.h"
#include "parallel/moe/row_balance.h"

namespace plait::moe {
namespace {

struct Spill {
  int expert = -1, rank = -1;  // -1: no slot helps
  std::int64_t rows = 0, own = 0;
};

// The replica that takes the most rows from rank `from` without raising its own rank above `most`; ties: the one with
// the most rows from its own rank.
Spill LargestSpill(const Census& census, const RowBalance& balance, std::int64_t most, int slots, int from) {
  Spill best;
  for (int to = 0; to < census.ranks(); ++to) {
    const std::int64_t limit = std::min(balance.loads()[from].rows - most, most - balance.loads()[to].rows);
    if (limit <= 0 || balance.loads()[to].replicas >= slots) continue;
    for (int expert = 0; expert < census.experts(); ++expert) {
      if (balance.Has(to, expert)) continue;
      const std::int64_t rows = std::min(balance.rows(from, expert), limit), own = census.at(to, expert);
      if (rows > best.rows || (rows == best.rows && rows > 0 && own > best.own))
        best = {expert, to, rows, own};
    }
  }
  return best;
}

// LargestSpill of the busiest rank for which there is one.
Spill NextSpill(const Census& census, const RowBalance& balance, std::int64_t most, int slots) {
  std::vector<int> order(census.ranks());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return balance.loads()[a].rows > balance.loads()[b].rows; });
  for (const int from : order) {
    if (balance.loads()[from].rows <= most) break;
    const Spill spill = LargestSpill(census, balance, most, slots, from);
    if (spill.expert >= 0) return spill;
  }
  return {};
}

}  // namespace

void AddBalancingReplicas(const PlannerOptions& options, const Census& census, ExpertPlacement& placement) {
  const std::int64_t total = census.total(), ranks = census.ranks();
  const auto tolerated = static_cast<std::int64_t>(
      std::floor((1 + options.overload_tolerance) * static_cast<double>(total) / ranks));
  const std::int64_t most = std::max((total + ranks - 1) / ranks, tolerated);
  RowBalance balance(census, placement, Sharing::kEqual);
  for (Spill spill; (spill = NextSpill(census, balance, most, options.replica_slots)).expert >= 0;) {
    balance.AddReplica(spill.expert, spill.rank);
    placement.AddReplica(spill.expert, spill.rank);
  }
}

}  // namespace plait::moe
