#include <algorithm>
#include <cmath>
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

// Chooses replicas one at a time. The time of a step is that of the busiest rank, which a single replica may not reduce
// when several are needed; so the objective here is the 4-norm over the ranks.
class Candidates {
 public:
  Candidates(const PlannerOptions& options, const Census& census)
      : census_(census),
        slots_(options.replica_slots),
        row_compute_(options.cost.row_flops() / options.cost.rank_flops_per_second),
        row_exchange_(4 * options.cost.row_bytes() / options.cost.link_bytes_per_second),
        price_(PredictSeconds(options.cost, {{RankLoad{.replicas = 1}}}).replicas) {
    std::vector<std::int64_t> rows(census.experts());
    for (int expert = 0; expert < census.experts(); ++expert) {
      rows[expert] = census.OfExpert(expert);
      if (rows[expert] > 0) experts_.push_back(expert);
    }
    std::stable_sort(experts_.begin(), experts_.end(), [&](int a, int b) { return rows[a] > rows[b]; });
    experts_.resize(std::min(experts_.size(), std::size_t(2) * slots_ * census.ranks()));
  }

  // expert -1: no replica would reduce it.
  Replica Best(const RowBalance& balance) const {
    Powers now;
    for (const RankLoad& load : balance.loads()) now.Add(load, 1);
    const double without_price = Seconds(now);
    double least = HUGE_VAL;
    Replica best;
    for (const int expert : experts_) {
      const int from = balance.RankOfMostRemoteRows(expert);
      for (int rank = 0; rank < census_.ranks(); ++rank) {
        if (balance.loads()[rank].replicas >= slots_ || balance.Has(rank, expert)) continue;
        Powers with = now;
        const double price = price_ * Change(balance, expert, from, rank, with), seconds = Seconds(with);
        if (seconds < without_price && seconds + price < least)
          least = seconds + price, best = {expert, rank};
      }
    }
    return best;
  }

 private:
  // Sums of 4th powers over the ranks.
  struct Powers {
    double computed = 0, moved = 0;
    int copied = 0;  // largest

    void Add(const RankLoad& load, double sign) {
      computed += sign * Fourth(load.rows);
      moved += sign * (Fourth(load.sent_rows) + Fourth(load.received_rows));
      copied = std::max({copied, load.replicas, load.replicas_of_its_experts});
    }
    static double Fourth(std::int64_t rows) {
      const auto x = static_cast<double>(rows);
      return x * x * x * x;
    }
  };

  double Seconds(const Powers& powers) const {
    return row_compute_ * std::sqrt(std::sqrt(std::max(powers.computed, 0.0))) +
           row_exchange_ * std::sqrt(std::sqrt(std::max(powers.moved, 0.0)));
  }

  // The effect of a replica on its rank and on the rank that it takes rows from; others are assumed not to change.
  // Returns the number of replicas that the busiest rank sends or receives.
  int Change(const RowBalance& balance, int expert, int from, int rank, Powers& powers) const {
    RankLoad there = balance.loads()[from], here = balance.loads()[rank];
    powers.Add(there, -1);
    powers.Add(here, -1);
    const std::int64_t remote = balance.RemoteRows(from, expert);
    const std::int64_t own = std::min(census_.at(rank, expert), remote);
    const std::int64_t moved = std::min(remote, std::max(own, (there.rows - here.rows) / 2));
    there.rows -= moved;
    there.received_rows -= moved;
    here.rows += moved;
    here.sent_rows -= own;
    here.received_rows += moved - own;
    ++here.replicas;
    powers.Add(there, 1);
    powers.Add(here, 1);
    return std::max(powers.copied, balance.loads()[balance.home_rank(expert)].replicas_of_its_experts + 1);
  }

  const Census& census_;
  int slots_;
  double row_compute_, row_exchange_, price_;  // seconds
  std::vector<int> experts_;                   // those with the most rows, at most twice as many as all slots
};

// Replicas that pay off together, most useful first.
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

// Removes from Grow's replicas those that do not reduce the time given the others, last ones first.
void AddShadows(const PlannerOptions& options, const Census& census, ExpertPlacement& placement) {
  const auto seconds_of = [&](const std::vector<Replica>& replicas) {
    return PredictTotal(options.cost, RowBalance(census, With(placement, replicas), Sharing::kLocalFirst));
  };
  std::vector<Replica> replicas = Grow(options, census, placement);
  double seconds = seconds_of(replicas);
  std::size_t before = 0;
  do {
    before = replicas.size();
    for (std::size_t at = before; at-- > 0;) {
      std::vector<Replica> fewer = replicas;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(at));
      const double without = seconds_of(fewer);
      if (without > seconds) continue;
      replicas = std::move(fewer);
      seconds = without;
    }
  } while (replicas.size() < before);
  placement = With(placement, replicas);
}

}  // namespace plait::moe
