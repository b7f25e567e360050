// A report in machine-readable formats.
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
//            "axes": {"dp": {"bytes_per_step", "total_bytes", "in_flight_seconds", "exposed_seconds", "overlap"}},
//            "ranks": {"dt_per_rank": {"units", "medians": [...], "slowest_shares": [...], "slowest", "spread",
//                                      "draws"}},
//            "notes": [...]}],
//  "changed_settings": {"name": [value by run]},
//  "comparison": [{"metric", "run", "per_step", "ratio", "low", "high", "difference"}]}
// "slowest" and "spread" are null, and "slowest_shares" is empty, for vectors that do not tell which rank is slow
// (rank_numbers.h). "comparison" is empty for a single run; with "per_step" it is of sums over a draw divided by its
// steps, because the runs' draws cover different numbers of them; "ratio" is of numbers in the same units, and null, with
// "difference" "other units", where they cannot be converted. All other numbers are in the units of the file, at full
// precision; values that are not finite are null. Invalid UTF-8 is replaced by U+FFFD.
std::string JsonText(absl::Span<const RunNumbers> runs);

// One line per run and metric, under a header:
// run,metric,units,statistic,n,nan,positive_infinities,negative_infinities,median,p10,p90,mean,min,max,last
// Quoted as in RFC 4180; values that are not finite are "nan", "inf", "-inf", as pandas reads them. In texts control
// characters become spaces, invalid UTF-8 U+FFFD.
std::string CsvText(absl::Span<const RunNumbers> runs);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_MACHINE_TEXT_H_
