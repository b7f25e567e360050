// Parts of a page: tables, and the key figures at its top.
#ifndef PLAIT_TOOLS_REPORT_PARTS_PAGE_BLOCKS_H_
#define PLAIT_TOOLS_REPORT_PARTS_PAGE_BLOCKS_H_

#include <string>

#include "absl/types/span.h"
#include "tools/report_parts/report_tables.h"
#include "tools/report_parts/run_numbers.h"

namespace plait::report {

// Run i has the CSS class c(i modulo this), which is its colour.
inline constexpr int kPageColourCount = 6;

// How a table wider than the screen is shown: with a horizontal scroll bar, or, on phones, with each row as a block of
// lines "column value".
enum class NarrowTable { kScrolls, kStacks };

// The table in a box that scrolls horizontally, also by keyboard. Runs are marked with their colours.
std::string TableHtml(const ReportTable& table, absl::Span<const RunNumbers> runs,
                      NarrowTable narrow = NarrowTable::kScrolls);

// Key figures, as far as the runs have them: time per step, samples and tokens per second, last loss, overlap, slowest
// rank. Empty if there are none.
std::string Tiles(absl::Span<const RunNumbers> runs);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_PAGE_BLOCKS_H_
