// Summary of a column of values: order statistics, mean, counts of non-finite values, and medians of blocks.
//
//   const Summary summary = Summarize(*table.Column("dt"));
//   summary.median, summary.p90, summary.nan ...
//
// Quantiles are interpolated linearly, as numpy's default: quantile q of n values is at index q (n - 1) in order. They
// are found by selection, in linear time; no column is sorted.
// Local.
#ifndef PLAIT_TOOLS_REPORT_PARTS_SUMMARY_H_
#define PLAIT_TOOLS_REPORT_PARTS_SUMMARY_H_

#include <cstdint>
#include <limits>
#include <vector>

namespace plait::report {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Number of consecutive blocks of a run, for the bootstrap (comparison.h).
inline constexpr int kBlocks = 16;

struct Summary {
  std::int64_t draws = 0;   // length of the column
  std::int64_t finite = 0;  // the statistics below are over these; NaN where there are none
  std::int64_t nan = 0;     // given as NaN, or not given
  std::int64_t positive_infinities = 0;
  std::int64_t negative_infinities = 0;
  bool whole = false;  // there are finite values, and all are whole numbers of magnitude at most 2^53
  double mean = kNaN, min = kNaN, max = kNaN;
  double last = kNaN;  // the last value that is not NaN; may be infinite
  double p10 = kNaN, median = kNaN, p90 = kNaN;

  // Indices of the first and the last value that is not NaN; -1 if there is none.
  std::int64_t first_place = -1, last_place = -1;

  // Medians of kBlocks consecutive blocks of the finite values; the values themselves if there are no more than
  // kBlocks.
  std::vector<double> block_medians;

  // Whether fewer than half of the draws from the first to the last value have one: a metric per epoch, for example.
  bool sparse() const { return last_place >= 0 && 2 * (finite + infinities()) <= last_place - first_place; }
  std::int64_t infinities() const { return positive_infinities + negative_infinities; }
  // NaN between the first and the last value.
  std::int64_t inner_nan() const {
    return last_place < 0 ? 0 : last_place - first_place + 1 - finite - infinities();
  }
  double sum() const { return finite == 0 ? 0 : mean * static_cast<double>(finite); }
};

Summary Summarize(std::vector<double> column);

// Quantile q, 0 <= q <= 1, of finite values, which are reordered; NaN if there are none.
double Quantile(std::vector<double>& values, double q);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_SUMMARY_H_
