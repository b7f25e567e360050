#include <algorithm>
#include <vector>

#include "parallel/moe/policies.h"
#include "parallel/moe/row_balance.h"

namespace plait::moe {
namespace {

struct Replica {
  int expert = -1, rank = -1;
};

double PredictTotal(const MoeCostModel& cost, const RowBalance& balance) {
  return PredictSeconds(cost, balance.loads()).total();
}

ExpertPlacement With(const ExpertPlacement& placement, const std::vector<Replica>& replicas) {
  ExpertPlacement result = placement;
  for (const Replica& replica : replicas) result.AddReplica(replica.expert, replica.rank);
  return result;
}

// The replica that may save most, were the ranks that it relieves the busiest ones: an upper bound, so that a first of
// two replicas that pay together is found too. None where no bound is above the price.
class Candidates {
 public:
  Candidates(const PlannerOptions& options, const Census& census)
      : census_(census),
        slots_(options.replica_slots),
        mean_(census.total() / census.ranks()),
        row_exchange_(4 * options.cost.row_bytes() / options.cost.link_bytes_per_second),
        row_compute_(options.cost.row_flops() / options.cost.rank_flops_per_second),
        price_(PredictSeconds(options.cost, {{RankLoad{.replicas = 1}}}).replicas) {}

  Replica Best(const RowBalance& balance) const {
    Replica best;
    double most = 0;
    for (int rank = 0; rank < census_.ranks(); ++rank) {
      if (balance.loads()[rank].replicas >= slots_) continue;
      for (int expert = 0; expert < census_.experts(); ++expert) {
        if (balance.Has(rank, expert)) continue;
        const double gain = Gain(balance, expert, rank);
        if (gain > most) most = gain, best = {expert, rank};
      }
    }
    return best;
  }

 private:
  double Gain(const RowBalance& balance, int expert, int rank) const {
    const int home = balance.home_rank(expert);
    const std::int64_t home_load = balance.loads()[home].rows, own = census_.at(rank, expert);
    const std::int64_t moved =
        std::min(balance.rows(home, expert), std::max(own, (home_load - balance.loads()[rank].rows) / 2));
    const std::int64_t relief = std::clamp<std::int64_t>(home_load - mean_, 0, moved);
    return static_cast<double>(moved) * row_exchange_ + static_cast<double>(relief) * row_compute_ - price_;
  }

  const Census& census_;
  int slots_;
  std::int64_t mean_;
  double row_exchange_, row_compute_, price_;  // seconds
};

// Replicas that pay together, most useful first.
std::vector<Replica> Grow(const PlannerOptions& options, const Census& census,
                          const ExpertPlacement& placement) {
  const Candidates candidates(options, census);
  RowBalance balance(census, placement, Sharing::kLocalFirst);
  std::vector<Replica> replicas;
  std::size_t best = 0;
  double least = PredictTotal(options.cost, balance);
  for (Replica next = candidates.Best(balance); next.expert >= 0; next = candidates.Best(balance)) {
    balance.AddReplica(next.expert, next.rank);
    replicas.push_back(next);
    const double seconds = PredictTotal(options.cost, balance);
    if (seconds < least) least = seconds, best = replicas.size();
  }
  replicas.resize(best);
  return replicas;
}

}  // namespace

// What Grow found, without those that do not lower the time given the others.
void AddShadows(const PlannerOptions& options, const Census& census, ExpertPlacement& placement) {
  const auto seconds_of = [&](const std::vector<Replica>& replicas) {
    return PredictTotal(options.cost, RowBalance(census, With(placement, replicas), Sharing::kLocalFirst));
  };
  std::vector<Replica> replicas = Grow(options, census, placement);
  double seconds = seconds_of(replicas);
  for (std::size_t unchanged = 0, at = replicas.size(); unchanged < replicas.size();) {
    at = (at == 0 ? replicas.size() : at) - 1;
    std::vector<Replica> fewer = replicas;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(at));
    const double without = seconds_of(fewer);
    ++unchanged;
    if (without > seconds) continue;
    replicas = std::move(fewer);
    seconds = without;
    unchanged = 0;
  }
  placement = With(placement, replicas);
}

}  // namespace plait::moe
