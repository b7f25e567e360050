// A report for programs.
#ifndef PLAIT_TOOLS_REPORT_PARTS_MACHINE_TEXT_H_
#define PLAIT_TOOLS_REPORT_PARTS_MACHINE_TEXT_H_

#include <string>

#include "absl/types/span.h"
#include "tools/report_parts/run_numbers.h"

namespace plait::report {

// {"runs": [{"path", "label", "draws", "skipped", "journal_draws", "complete", "attributes": {...},
//            "metrics": {"dt": {"units", "long_name", "statistic", "n", "nan", "positive_infinities",
//                               "negative_infinities", "first_draw", "last_draw", "median", "p10", "p90",
//                               "mean", "min", "max", "last"}},
//            "rates": {"steps": {"median", "p10", "p90", "what"}},
//            "axes": {"dp": {"bytes_per_step", "total_bytes", "in_flight_seconds", "exposed_seconds",
//            "overlap"}}, "ranks": {"dt_per_rank": {"medians": [...], "slowest_shares": [...], "slowest",
//            "spread"}}, "notes": [...]}],
//  "changed_settings": {"name": [value by run]},
//  "comparison": [{"metric", "run", "ratio", "low", "high", "difference"}]}
// Numbers are in the units of the file, doubles in full; what is not finite is null. Text that is not UTF-8
// has its bad bytes replaced.
std::string JsonText(absl::Span<const RunNumbers> runs);

// One line per run and metric, under a header:
// run,metric,units,statistic,n,nan,positive_infinities,negative_infinities,median,p10,p90,mean,min,max,last
// As RFC 4180 quotes it; what is not finite is "nan", "inf", "-inf", as pandas reads it.
std::string CsvText(absl::Span<const RunNumbers> runs);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_MACHINE_TEXT_H_
