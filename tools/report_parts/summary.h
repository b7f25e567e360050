// What a column of values comes to: order statistics, means, what is not finite, and the spread of its parts.
//
//   const Summary summary = Summarize(*table.Column("dt"));
//   summary.median, summary.p90, summary.nan ...
//
// Percentiles are interpolated linearly between neighbours in order, as numpy's default does: the q-th of n
// values is at place q (n - 1), from 0. They are found by selection, in linear time; no column is sorted.
// Local.
#ifndef PLAIT_TOOLS_REPORT_PARTS_SUMMARY_H_
#define PLAIT_TOOLS_REPORT_PARTS_SUMMARY_H_

#include <cstdint>
#include <limits>
#include <vector>

namespace plait::report {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// How many consecutive parts of a run stand for its spread in time.
inline constexpr int kBlocks = 16;

struct Summary {
  std::int64_t draws = 0;   // length of the column
  std::int64_t finite = 0;  // the statistics below are over these; NaN where there are none
  std::int64_t nan = 0;     // given as NaN, or not given
  std::int64_t positive_infinities = 0;
  std::int64_t negative_infinities = 0;
  double mean = kNaN, min = kNaN, max = kNaN;
  double last = kNaN;  // the last that is not NaN; may be infinite
  double p10 = kNaN, median = kNaN, p90 = kNaN;

  // The first and the last place that is not NaN; -1 where there is none.
  std::int64_t first_place = -1, last_place = -1;

  // Medians of kBlocks consecutive parts of the finite values, or the values where there are no more.
  std::vector<double> block_medians;

  // Given at less than half of the draws between the first and the last: once an epoch, say.
  bool sparse() const { return last_place >= 0 && 2 * (finite + infinities()) <= last_place - first_place; }
  std::int64_t infinities() const { return positive_infinities + negative_infinities; }
  // NaN between the first and the last value.
  std::int64_t inner_nan() const {
    return last_place < 0 ? 0 : last_place - first_place + 1 - finite - infinities();
  }
  double sum() const { return finite == 0 ? 0 : mean * static_cast<double>(finite); }
};

Summary Summarize(std::vector<double> column);

// The q-th quantile, 0 <= q <= 1, of finite values, which it reorders; NaN of none.
double Quantile(std::vector<double>& values, double q);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_SUMMARY_H_
