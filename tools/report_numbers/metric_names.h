// Which metrics a report has, and which come first.
#ifndef PLAIT_TOOLS_REPORT_NUMBERS_METRIC_NAMES_H_
#define PLAIT_TOOLS_REPORT_NUMBERS_METRIC_NAMES_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tools/report_numbers/run_numbers.h"

namespace plait::report {

// Of all runs, those of the first run first, in the order of its file. Statistics over ranks beside a mean
// are left out: dt_min, dt_max and dt_std where there is dt.
std::vector<std::string> MetricNames(absl::Span<const RunNumbers> runs);

// "dt" for dt_min, dt_max and dt_std where the run has dt as well, else "".
std::string MeanOfSpread(const RunNumbers& run, const std::string& name);

// What a reader looks for first: loss, dt, dtf, dtb, sps, sps_world and accuracy, also of programs that name
// them train_loss or train/loss; where there are none, the first three metrics. Only metrics with values.
std::vector<std::string> MainMetrics(absl::Span<const RunNumbers> runs);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_NUMBERS_METRIC_NAMES_H_
