// A metric of all runs as a figure: SVG curves on common, robust axes, with legend and notes.
#ifndef PLAIT_TOOLS_REPORT_PAGES_LINE_CHART_H_
#define PLAIT_TOOLS_REPORT_PAGES_LINE_CHART_H_

#include <string>

#include "absl/types/span.h"
#include "tools/report_numbers/run_numbers.h"

namespace plait::report {

// A <figure> whose <svg class="chart"> has a <g class="series"> for each run that has the metric, in the
// run's colour (classes c0, c1, ...). A point that stands for several draws is a band from the least to the
// largest with the median in it. What is clipped is marked at the edge and counted in the caption, with the
// extreme value; so are NaN and infinities. The attributes data-* are what the page's script needs to show
// values.
std::string LineChart(absl::Span<const RunNumbers> runs, const std::string& metric);

// How many colours there are; later runs take them again.
inline constexpr int kRunColours = 6;

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PAGES_LINE_CHART_H_
