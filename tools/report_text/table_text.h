// Tables for a terminal and as Markdown.
#ifndef PLAIT_TOOLS_REPORT_TEXT_TABLE_TEXT_H_
#define PLAIT_TOOLS_REPORT_TEXT_TABLE_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "tools/report_text/report_tables.h"

namespace plait::report {

// No line is longer than `columns` (at least 20): a table that is too wide goes on below, with its first
// column again, and texts that are too long for that are wrapped.
//
//   Metrics
//     metric       n   median      p10 ...
//     dt          99  1.54 ms  1.48 ms ...
std::string TextTable(const ReportTable& table, int columns);

// As GitHub shows it; bars and line ends in cells are taken care of.
std::string MarkdownTable(const ReportTable& table);

// Characters of a terminal, as far as one per code point holds.
int TextWidth(absl::string_view text);

// What is not ASCII becomes "?", and so do control characters: for terminals without UTF-8.
std::string AsciiOnly(absl::string_view text);

// Control characters, which could move the cursor, become "?".
std::string WithoutControl(absl::string_view text);

// Words in lines of at most `columns`; a longer word is cut.
std::vector<std::string> WrappedLines(absl::string_view text, int columns);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_TEXT_TABLE_TEXT_H_
