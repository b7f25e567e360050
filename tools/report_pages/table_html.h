// A report's table in a page.
#ifndef PLAIT_TOOLS_REPORT_PAGES_TABLE_HTML_H_
#define PLAIT_TOOLS_REPORT_PAGES_TABLE_HTML_H_

#include <string>

#include "absl/types/span.h"
#include "tools/report_numbers/run_numbers.h"
#include "tools/report_text/report_tables.h"

namespace plait::report {

// In a box of its own, which scrolls sideways by itself and by keyboard. Runs are marked with their colours.
std::string TableHtml(const ReportTable& table, absl::Span<const RunNumbers> runs);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PAGES_TABLE_HTML_H_
