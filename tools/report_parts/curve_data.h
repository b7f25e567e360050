// The numbers behind a page's charts, which page.js draws.
//
// Text of JSON that is safe between <script> tags (no '<'):
// {"axes": [{"name": "step", "label": "step", "units": "count"}, ...],     // those that a run has
//  "metrics": [{"name", "units"}, ...],                                    // a chart each
//  "runs": [{"label", "draws", "complete", "per_point",
//            "x": {"step": [...], "tokens": [...], "time": [...]},         // at each point
//            "curves": [{"y": [...], "low": [...], "high": [...], "sparse"} or null, ...]}]}   // by metric
//
// Up to kMostPoints draws a point is a draw, and its numbers are those of the file, to the last bit; in longer
// runs a point is per_point consecutive draws: y their median, low and high the extremes, at seven digits, x that
// of the draw in the middle. null is NaN or not given; infinities are the texts "Infinity" and "-Infinity".
//
// step: metric `step` or `iter`, else the number of the draw. time: seconds of the steps so far, the sum of `dt`.
// tokens: the sum of `tokens`, what each step took.
#ifndef PLAIT_TOOLS_REPORT_PARTS_CURVE_DATA_H_
#define PLAIT_TOOLS_REPORT_PARTS_CURVE_DATA_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tools/report_parts/run_numbers.h"

namespace plait::report {

inline constexpr int kMostPoints = 1000;

// The scalars of the runs, main ones first. What no run changes and what counts the steps needs no chart.
struct ChartedMetrics {
  std::vector<std::string> drawn, constant, without_values;
};
ChartedMetrics ChartedOf(absl::Span<const RunNumbers> runs);

// At every draw, the skipped ones included, as above. No numbers: the run has no `dt`.
absl::StatusOr<std::vector<double>> StepsOf(const RunNumbers& run);
absl::StatusOr<std::vector<double>> SecondsOf(const RunNumbers& run);

// Of the drawn ones. Errors: those of reading a column.
absl::StatusOr<std::string> CurveJson(absl::Span<const RunNumbers> runs);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_CURVE_DATA_H_
