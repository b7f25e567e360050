// The figures at a glance, at the head of a page.
#ifndef PLAIT_TOOLS_REPORT_PAGES_TILES_H_
#define PLAIT_TOOLS_REPORT_PAGES_TILES_H_

#include <string>

#include "absl/types/span.h"
#include "tools/report_numbers/run_numbers.h"

namespace plait::report {

// Time of a step, samples or tokens per second, last loss, overlap, slowest rank: those that the runs have.
std::string Tiles(absl::Span<const RunNumbers> runs);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PAGES_TILES_H_
