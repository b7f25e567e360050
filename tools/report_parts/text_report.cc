#include "tools/report_parts/text_report.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "tools/report_parts/report_tables.h"
#include "tools/report_parts/run_plots.h"
#include "tools/report_parts/table_text.h"

namespace plait::report {
namespace {

bool AreNames(const std::vector<std::string>& plots) {
  return !plots.empty() && plots[0] != "none" && plots[0] != "all";
}

std::string PlotsText(absl::Span<const RunNumbers> runs, const std::vector<std::string>& wanted,
                      const data::TextStyle& style) {
  if (!wanted.empty() && wanted[0] == "none") return "";
  const std::vector<std::string> drawn = wanted.empty()       ? MainMetrics(runs)
                                         : wanted[0] == "all" ? MetricNames(runs)
                                                              : wanted;
  const absl::StatusOr<std::string> plots = TerminalPlots(runs, drawn, style);
  if (plots.ok()) return *plots;
  return absl::StrCat("No plots: ", plots.status().message(), "\n");
}

}  // namespace

absl::Status CheckPlots(absl::Span<const RunNumbers> runs, const std::vector<std::string>& plots) {
  if (!AreNames(plots)) return absl::OkStatus();
  std::vector<std::string> known;
  for (const RunNumbers& run : runs) {
    for (const MetricNumbers& numbers : run.metrics) {
      const std::string& name = numbers.metric.name;
      if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
    }
  }
  for (const std::string& name : plots) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return absl::NotFoundError(base::Printable(
        absl::StrCat("--plots: no metric ", name, "; there are ", absl::StrJoin(known, ", "))));
  }
  return absl::OkStatus();
}

std::string TextReport(absl::Span<const RunNumbers> runs, const std::vector<std::string>& plots,
                       const data::TextStyle& style) {
  std::string text;
  for (const ReportTable& table : ReportTables(runs)) {
    absl::StrAppend(&text, TextTable(table, style.columns), "\n");
  }
  for (const std::string& note : Notes(runs)) {
    for (const std::string& line : base::WrapText(base::Printable(note), style.columns)) {
      absl::StrAppend(&text, line, "\n");
    }
  }
  if (!style.utf8) text = base::AsciiOnly(text);
  return absl::StrCat(text, PlotsText(runs, plots, style));
}

std::string MarkdownReport(absl::Span<const RunNumbers> runs) {
  std::string text;
  for (const ReportTable& table : ReportTables(runs)) absl::StrAppend(&text, MarkdownTable(table), "\n");
  for (const std::string& note : Notes(runs)) absl::StrAppend(&text, "- ", MarkdownLine(note), "\n");
  return text;
}

}  // namespace plait::report
