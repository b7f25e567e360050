#include "tools/report_parts/rank_times.h"

#include <algorithm>
#include <cmath>

#include "base/status_macros.h"
#include "tools/report_parts/summary.h"

namespace plait::report {
namespace {

// Draws that are read together, and how many values are looked at in all (16 MB).
constexpr std::int64_t kBlockDraws = 4096;
constexpr std::int64_t kMostValues = std::int64_t{1} << 21;

struct Tally {
  std::vector<std::vector<double>> values;  // by rank
  std::vector<std::int64_t> slowest;        // by rank, draws
  std::int64_t draws = 0;
};

void Add(absl::Span<const double> row, Tally& tally) {
  std::int64_t slowest = -1;
  for (std::size_t rank = 0; rank < row.size(); ++rank) {
    if (!std::isfinite(row[rank])) continue;
    tally.values[rank].push_back(row[rank]);
    if (slowest < 0 || row[rank] > row[slowest]) slowest = rank;
  }
  if (slowest < 0) return;
  ++tally.slowest[slowest];
  ++tally.draws;
}

void Judge(RankTimes& times) {
  std::vector<double> finite;
  for (std::size_t rank = 0; rank < times.medians.size(); ++rank) {
    if (std::isnan(times.medians[rank])) continue;
    finite.push_back(times.medians[rank]);
    if (times.slowest < 0 || times.medians[rank] > times.medians[times.slowest]) times.slowest = rank;
  }
  if (times.slowest >= 0) times.spread = times.medians[times.slowest] / Quantile(finite, 0.5);
}

}  // namespace

absl::StatusOr<RankTimes> RankTimesOf(const data::HistoryTable& table, const data::TableMetric& metric,
                                      std::int64_t skip) {
  const std::int64_t draws = table.draws() - skip;
  const std::int64_t blocks = (draws + kBlockDraws - 1) / kBlockDraws;
  const std::int64_t most_blocks = std::max<std::int64_t>(1, kMostValues / (kBlockDraws * metric.width));
  const std::int64_t stride = (blocks + most_blocks - 1) / most_blocks;
  Tally tally = {std::vector<std::vector<double>>(metric.width), std::vector<std::int64_t>(metric.width)};
  for (std::int64_t block = 0; block < blocks; block += stride) {
    const std::int64_t first = skip + block * kBlockDraws;
    const std::int64_t count = std::min(kBlockDraws, table.draws() - first);
    PLAIT_ASSIGN_OR_RETURN(const std::vector<double> rows, table.Rows(metric.name, first, count));
    for (std::int64_t i = 0; i < count; ++i) {
      Add(absl::MakeConstSpan(rows).subspan(i * metric.width, metric.width), tally);
    }
  }
  RankTimes times = {.metric = metric.name, .units = metric.units, .draws = tally.draws, .of_draws = draws};
  for (std::int64_t rank = 0; rank < metric.width; ++rank) {
    times.medians.push_back(Quantile(tally.values[rank], 0.5));
    times.slowest_shares.push_back(tally.draws == 0 ? 0 : double(tally.slowest[rank]) / double(tally.draws));
  }
  Judge(times);
  return times;
}

}  // namespace plait::report
