// Tables as text for a terminal, and as Markdown.
#ifndef PLAIT_TOOLS_REPORT_PARTS_TABLE_TEXT_H_
#define PLAIT_TOOLS_REPORT_PARTS_TABLE_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "tools/report_parts/report_tables.h"

namespace plait::report {

// Lines are at most `columns` wide (at least 20). A table that is too wide continues below, with its first column
// repeated, and long texts are wrapped.
//
//   Metrics
//     metric       n   median      p10 ...
//     dt          99  1.54 ms  1.48 ms ...
std::string TextTable(const ReportTable& table, int columns);

// For one line of GitHub Markdown: |, < and ` are escaped, control characters and invalid bytes become ?.
std::string MarkdownLine(absl::string_view text);

// GitHub Markdown: a heading, the table and its footnote. Cells and the footnote are as MarkdownLine() writes them.
std::string MarkdownTable(const ReportTable& table);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_TABLE_TEXT_H_
