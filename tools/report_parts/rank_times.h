// How evenly the ranks work: which of them is the slowest.
#ifndef PLAIT_TOOLS_REPORT_PARTS_RANK_TIMES_H_
#define PLAIT_TOOLS_REPORT_PARTS_RANK_TIMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/history/history_table.h"

namespace plait::report {

struct RankTimes {
  std::string metric;  // a vector along `rank`, such as dt_per_rank
  std::string units;
  std::vector<double> medians = {};         // by rank; NaN for a rank without finite values
  std::vector<double> slowest_shares = {};  // by rank: in which share of the draws it took longest
  std::int64_t slowest = -1;                // the rank of the largest median; -1: none
  double spread = 0;                        // largest median / median of the medians
  std::int64_t draws = 0;                   // that were looked at ...
  std::int64_t of_draws = 0;                // ... of so many: long runs of many ranks are looked at in parts
};

// Of vector `metric`, from draw `skip` on.
absl::StatusOr<RankTimes> RankTimesOf(const data::HistoryTable& table, const data::TableMetric& metric,
                                      std::int64_t skip);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_RANK_TIMES_H_
