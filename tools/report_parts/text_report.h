// A report for people who read it in a terminal or as Markdown.
#ifndef PLAIT_TOOLS_REPORT_PARTS_TEXT_REPORT_H_
#define PLAIT_TOOLS_REPORT_PARTS_TEXT_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "data/plot/plot.h"
#include "tools/report_parts/run_numbers.h"

namespace plait::report {

// NOT_FOUND, listing the metrics, unless every one of `plots` - as for TextReport - is a metric of a run.
absl::Status CheckPlots(absl::Span<const RunNumbers> runs, const std::vector<std::string>& plots);

// Tables, notes and plots. `plots`: metrics to plot; empty: the main ones; or {"all"} or {"none"}. If plots cannot be
// drawn, a line says why.
std::string TextReport(absl::Span<const RunNumbers> runs, const std::vector<std::string>& plots,
                       const data::TextStyle& style);

// Tables and notes.
std::string MarkdownReport(absl::Span<const RunNumbers> runs);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_TEXT_REPORT_H_
