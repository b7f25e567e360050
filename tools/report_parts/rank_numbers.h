// What a vector over ranks says about each rank, and which rank is the slowest.
#ifndef PLAIT_TOOLS_REPORT_PARTS_RANK_NUMBERS_H_
#define PLAIT_TOOLS_REPORT_PARTS_RANK_NUMBERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/history/history_table.h"
#include "tools/report_parts/summary.h"

namespace plait::report {

// Where the slowest rank is: the largest time, the lowest rate. Of other numbers, such as a load or a percentage,
// nobody can tell.
enum class SlowestIs { kUnknown, kLargest, kLowest };

struct RankNumbers {
  std::string metric;  // a vector along `rank`, such as dt_per_rank
  std::string units;
  SlowestIs slowest_is = SlowestIs::kUnknown;
  std::vector<double> medians = {};  // by rank; NaN for a rank without finite values
  // By rank: fraction of the draws with a finite value in which it was the slowest. Empty with kUnknown.
  std::vector<double> slowest_shares = {};
  std::int64_t slowest = -1;  // by the medians; -1: none, or kUnknown
  double spread = kNaN;       // median of the slowest rank / median of the medians
  std::int64_t draws =
      0;  // draws read, also those without a value: in long runs of many ranks only some blocks are
  std::int64_t of_draws = 0;  // all draws that are not skipped
};

// Whether the vector has a number for each rank, by its dimension or its name.
bool IsByRank(const data::TableMetric& metric);

// By the units; a metric without units by its name: dt, dtf, dtb, dto and step_time are times, sps and tps rates.
SlowestIs SlowestOf(const data::TableMetric& metric);

// The numbers of the draws behind the first `skip`. Errors: those of reading.
absl::StatusOr<RankNumbers> ReadRanks(const data::HistoryTable& table, const data::TableMetric& metric,
                                      std::int64_t skip);

// The vector that tells the run's slowest rank: the first of times, else the first of rates; nullptr if there is none.
const RankNumbers* TellsSlowest(absl::Span<const RankNumbers> ranks);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_RANK_NUMBERS_H_
