// Units of time, as the files of other programs name them.
// Local.
#ifndef PLAIT_TOOLS_REPORT_PARTS_TIME_UNITS_H_
#define PLAIT_TOOLS_REPORT_PARTS_TIME_UNITS_H_

#include "absl/strings/string_view.h"
#include "data/history/history_table.h"

namespace plait::report {

// How many seconds the unit is: 1e-3 for "ms", "milliseconds", ...; 0 for what is no unit of time.
double SecondsIn(absl::string_view units);

// How many seconds 1 in the metric's values is; 0 for a metric that is no time. Without units, dt, dtf, dtb, dto and
// step_time are in seconds, also with the prefix train_ or train/ and the suffix _per_rank.
double SecondsPerUnit(const data::TableMetric& metric);

// The metric's name without that prefix and suffix.
absl::string_view PlainName(const data::TableMetric& metric);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_TIME_UNITS_H_
