#include "tools/report_parts/rank_numbers.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "base/status_macros.h"
#include "tools/report_parts/time_units.h"

namespace plait::report {
namespace {

// Draws per block, and the largest number of values evaluated (16 MiB).
constexpr std::int64_t kBlockDraws = 4096;
constexpr std::int64_t kMostValues = std::int64_t{1} << 21;

bool IsRate(const data::TableMetric& metric) {
  if (metric.units.empty()) return PlainName(metric) == "sps" || PlainName(metric) == "tps";
  for (const char* per_second : {"/s", "s-1", "s^-1", "/sec", "/second", "per second"}) {
    if (absl::EndsWith(metric.units, per_second)) return true;
  }
  return metric.units == "Hz";
}

// The rank of the slowest finite number; -1: none.
std::int64_t SlowestAmong(absl::Span<const double> numbers, SlowestIs slowest_is) {
  std::int64_t slowest = -1;
  for (std::size_t rank = 0; rank < numbers.size() && slowest_is != SlowestIs::kUnknown; ++rank) {
    if (!std::isfinite(numbers[rank])) continue;
    const bool slower = slowest < 0 || (slowest_is == SlowestIs::kLargest ? numbers[rank] > numbers[slowest]
                                                                          : numbers[rank] < numbers[slowest]);
    if (slower) slowest = rank;
  }
  return slowest;
}

struct Tally {
  std::vector<std::vector<double>> values;  // by rank
  std::vector<std::int64_t> slowest;        // by rank, draws
  std::int64_t draws = 0;                   // read
  std::int64_t draws_with_values = 0;       // of these, with a finite one
};

void Add(absl::Span<const double> row, SlowestIs slowest_is, Tally& tally) {
  bool any = false;
  for (std::size_t rank = 0; rank < row.size(); ++rank) {
    if (!std::isfinite(row[rank])) continue;
    tally.values[rank].push_back(row[rank]);
    any = true;
  }
  ++tally.draws;
  if (any) ++tally.draws_with_values;
  if (const std::int64_t slowest = SlowestAmong(row, slowest_is); slowest >= 0) ++tally.slowest[slowest];
}

void Judge(RankNumbers& ranks) {
  ranks.slowest = SlowestAmong(ranks.medians, ranks.slowest_is);
  if (ranks.slowest < 0) return;
  std::vector<double> finite;
  for (const double median : ranks.medians) {
    if (!std::isnan(median)) finite.push_back(median);
  }
  ranks.spread = ranks.medians[ranks.slowest] / Quantile(finite, 0.5);
}

absl::StatusOr<Tally> TallyOf(const data::HistoryTable& table, const data::TableMetric& metric,
                              std::int64_t skip) {
  const std::int64_t blocks = (table.draws() - skip + kBlockDraws - 1) / kBlockDraws;
  const std::int64_t most_blocks = std::max<std::int64_t>(1, kMostValues / (kBlockDraws * metric.width));
  const std::int64_t stride = (blocks + most_blocks - 1) / most_blocks;
  Tally tally = {std::vector<std::vector<double>>(metric.width), std::vector<std::int64_t>(metric.width)};
  for (std::int64_t block = 0; block < blocks; block += stride) {
    const std::int64_t first = skip + block * kBlockDraws;
    const std::int64_t count = std::min(kBlockDraws, table.draws() - first);
    PLAIT_ASSIGN_OR_RETURN(const std::vector<double> rows, table.Rows(metric.name, first, count));
    for (std::int64_t i = 0; i < count; ++i) {
      Add(absl::MakeConstSpan(rows).subspan(i * metric.width, metric.width), SlowestOf(metric), tally);
    }
  }
  return tally;
}

}  // namespace

bool IsByRank(const data::TableMetric& metric) {
  return metric.dimension == "rank" || absl::StartsWith(metric.dimension, "rank_of_") ||
         absl::EndsWith(metric.name, "_per_rank");
}

SlowestIs SlowestOf(const data::TableMetric& metric) {
  if (SecondsPerUnit(metric) > 0) return SlowestIs::kLargest;
  return IsRate(metric) ? SlowestIs::kLowest : SlowestIs::kUnknown;
}

absl::StatusOr<RankNumbers> ReadRanks(const data::HistoryTable& table, const data::TableMetric& metric,
                                      std::int64_t skip) {
  PLAIT_ASSIGN_OR_RETURN(Tally tally, TallyOf(table, metric, skip));
  RankNumbers ranks = {.metric = metric.name,
                       .units = metric.units,
                       .slowest_is = SlowestOf(metric),
                       .draws = tally.draws,
                       .of_draws = table.draws() - skip};
  for (std::int64_t rank = 0; rank < metric.width; ++rank) {
    ranks.medians.push_back(Quantile(tally.values[rank], 0.5));
    if (ranks.slowest_is == SlowestIs::kUnknown) continue;
    const auto draws = static_cast<double>(std::max<std::int64_t>(1, tally.draws_with_values));
    ranks.slowest_shares.push_back(static_cast<double>(tally.slowest[rank]) / draws);
  }
  Judge(ranks);
  return ranks;
}

const RankNumbers* TellsSlowest(absl::Span<const RankNumbers> ranks) {
  const RankNumbers* chosen = nullptr;
  for (const RankNumbers& vector : ranks) {
    if (vector.slowest < 0) continue;
    const bool better = chosen == nullptr || (chosen->slowest_is == SlowestIs::kLowest &&
                                              vector.slowest_is == SlowestIs::kLargest);
    if (better) chosen = &vector;
  }
  return chosen;
}

}  // namespace plait::report
