// Plots of metrics over draws, all runs in one plot.
#ifndef PLAIT_TOOLS_REPORT_PARTS_RUN_PLOTS_H_
#define PLAIT_TOOLS_REPORT_PARTS_RUN_PLOTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/plot/plot.h"
#include "tools/report_parts/run_numbers.h"

namespace plait::report {

// In the units of the first run that has values of the metric. Series i is run i's, empty if the run does not have the
// metric, or in units that cannot be converted. Reads the metric's columns.
absl::StatusOr<data::Plot> PlotOf(absl::Span<const RunNumbers> runs, const std::string& metric);

// The entries of a vector metric over draws. Reads all its numbers.
absl::StatusOr<data::HeatMap> HeatMapOf(const RunNumbers& run, const data::TableMetric& metric);

// Text plots of those of `metrics` that any run has.
absl::StatusOr<std::string> TerminalPlots(absl::Span<const RunNumbers> runs,
                                          const std::vector<std::string>& metrics,
                                          const data::TextStyle& style);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_RUN_PLOTS_H_
