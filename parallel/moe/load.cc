#include "parallel/moe/load.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace plait::moe {
namespace {

void AddRows(std::vector<RankLoad>& loads, int source, int destination, std::int64_t rows) {
  loads[destination].rows += rows;
  if (source == destination) return;
  loads[source].sent_rows += rows;
  loads[destination].received_rows += rows;
}

}  // namespace

std::vector<RankLoad> LoadOfRanks(const Census& census, const ExpertPlacement& placement) {
  PLAIT_CHECK(census.ranks() == placement.ranks() && census.experts() == placement.experts())
      << "a census of " << census.experts() << " experts and " << census.ranks()
      << " ranks for a placement of " << placement.experts() << " on " << placement.ranks();
  std::vector<RankLoad> loads(placement.ranks());
  for (int source = 0; source < placement.ranks(); ++source) {
    for (int expert = 0; expert < placement.experts(); ++expert) {
      const absl::Span<const RowShare> shares = placement.shares(source, expert);
      for (const RowShare& share : shares) AddRows(loads, source, share.rank, share.rows);
      if (shares.empty()) AddRows(loads, source, placement.home_rank(expert), census.at(source, expert));
    }
  }
  for (int rank = 0; rank < placement.ranks(); ++rank) {
    loads[rank].replicas = placement.replicas(rank);
    for (const int expert : placement.slots(rank).subspan(placement.home_experts(rank))) {
      ++loads[placement.home_rank(expert)].replicas_of_its_experts;
    }
  }
  return loads;
}

LoadReport ReportLoad(const Census& census, const ExpertPlacement& placement) {
  LoadReport report;
  std::int64_t busiest_rank = 0, busiest_expert = 0;
  for (const RankLoad& load : LoadOfRanks(census, placement)) {
    busiest_rank = std::max(busiest_rank, load.rows);
    report.rows += load.rows;
    report.remote_rows += load.sent_rows;
    report.replicas += load.replicas;
  }
  double entropy = 0;
  for (int expert = 0; expert < census.experts(); ++expert) {
    const std::int64_t rows = census.OfExpert(expert);
    busiest_expert = std::max(busiest_expert, rows);
    if (rows == 0) ++report.dead_experts;
    const double share =
        static_cast<double>(rows) / static_cast<double>(std::max<std::int64_t>(report.rows, 1));
    if (rows > 0) entropy -= share * std::log(share);
  }
  if (report.rows == 0) return report;
  const auto rows = static_cast<double>(report.rows);
  report.overload_factor = static_cast<double>(busiest_rank) * placement.ranks() / rows;
  report.balancedness = 1 / report.overload_factor;
  report.max_violation = static_cast<double>(busiest_expert) * census.experts() / rows - 1;
  report.diversity = std::exp(entropy) / census.experts();
  return report;
}

}  // namespace plait::moe
