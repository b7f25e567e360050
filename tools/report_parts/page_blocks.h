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

// What becomes of a table that is wider than the screen: it scrolls sideways, or on phones its rows become blocks
// of lines "column value".
enum class NarrowTable { kScrolls, kStacks };

// In a box that scrolls sideways, also by keyboard. Runs are marked with their colours.
std::string TableHtml(const ReportTable& table, absl::Span<const RunNumbers> runs,
                      NarrowTable narrow = NarrowTable::kScrolls);

// Time per step, samples or tokens per second, last loss, overlap, slowest rank: those that the runs have.
std::string Tiles(absl::Span<const RunNumbers> runs);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_PAGE_BLOCKS_H_
