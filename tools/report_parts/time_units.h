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

// By what values in the units of `from` are multiplied to be in those of `to`: 1e-3 from "ms" to "s". 0 where they
// cannot be converted: of different units, only times can. A metric without units that is no time is taken to have
// those of the other if that is no time either.
double FactorBetween(const data::TableMetric& from, const data::TableMetric& to);

// The metric's name without that prefix and suffix.
absl::string_view PlainName(const data::TableMetric& metric);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_TIME_UNITS_H_
