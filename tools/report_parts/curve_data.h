// The numbers of a page's charts, which page.js draws.
//
// JSON text that is safe between <script> tags (no '<'):
// {"axes": [{"name": "step", "label": "step", "units": "count"}, ...],     // those that any run has
//  "metrics": [{"name", "units"}, ...],                                    // a chart each
//  "runs": [{"label", "draws", "complete", "per_point",
//            "x": {"step": [...], "tokens": [...], "time": [...]},         // at each point
//            "curves": [{"y": [...], "low": [...], "high": [...], "sparse", "note"} or null, ...]}]}
//                                                                          // by metric
//
// A metric has the units of the first run with values of it; a run whose units cannot be converted (FactorBetween in
// time_units.h) has no curve.
//
// In runs of up to kMostPoints draws a point is one draw, with the exact numbers of the file unless they are converted,
// and without "low" and "high". In longer runs a point is per_point consecutive draws: y is their median, low and high
// their extremes, rounded to seven digits, x that of the middle draw. null is NaN or not given; infinities are the
// strings "Infinity" and "-Infinity".
//
// note: how many values are NaN, and since which step there is none, a sentence or two; left out if none is missing.
//
// step: metric `step` or `iter`, else the file's own numbers of the draws (HistoryTable::DrawNumbers), if they are finite
// and ascending, else 0, 1, ... Where single draws have no number, it is put between those of their neighbours. time:
// seconds so far in this file, the cumulative sum of `dt` or `step_time`, which have a unit of time (SecondsPerUnit).
// tokens: the cumulative sum of `tokens`; steps before the file's first draw (BeganAtStep) count as its first ones.
#ifndef PLAIT_TOOLS_REPORT_PARTS_CURVE_DATA_H_
#define PLAIT_TOOLS_REPORT_PARTS_CURVE_DATA_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tools/report_parts/run_numbers.h"

namespace plait::report {

inline constexpr int kMostPoints = 1000;

// The scalar metrics of the runs, main ones first, by whether they get a chart. Step counters are in none of the lists.
struct ChartedMetrics {
  std::vector<std::string> drawn, constant, without_values;
};
ChartedMetrics ChartedOf(absl::Span<const RunNumbers> runs);

// The axes `step` and `time` above, at every draw, skipped ones included. SecondsOf is empty if the run has no times.
absl::StatusOr<std::vector<double>> StepsOf(const RunNumbers& run);
absl::StatusOr<std::vector<double>> SecondsOf(const RunNumbers& run);

// The JSON above, for the metrics that ChartedOf(runs).drawn lists. Errors: those of reading a column.
absl::StatusOr<std::string> CurveJson(absl::Span<const RunNumbers> runs);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_CURVE_DATA_H_
