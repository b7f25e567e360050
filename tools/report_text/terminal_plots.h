// The main curves of a report as text, all runs in one picture.
#ifndef PLAIT_TOOLS_REPORT_TEXT_TERMINAL_PLOTS_H_
#define PLAIT_TOOLS_REPORT_TEXT_TERMINAL_PLOTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/plot/plot.h"
#include "tools/report_numbers/run_numbers.h"

namespace plait::report {

// Metrics that no run has are left out. FailedPrecondition without gnuplot.
absl::StatusOr<std::string> TerminalPlots(absl::Span<const RunNumbers> runs,
                                          const std::vector<std::string>& metrics,
                                          const data::TextStyle& style);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_TEXT_TERMINAL_PLOTS_H_
