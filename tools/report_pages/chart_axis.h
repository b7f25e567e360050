// The axes of a page's charts: which values they span, and where their ticks are.
#ifndef PLAIT_TOOLS_REPORT_PAGES_CHART_AXIS_H_
#define PLAIT_TOOLS_REPORT_PAGES_CHART_AXIS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tools/report_numbers/summary.h"

namespace plait::report {

struct ChartAxis {
  double low = 0, high = 1;  // low < high

  // 0 at low, 1 at high.
  double Position(double value) const { return (value - low) / (high - low); }
};

// From percentile 1 to 99 of every series, extended to values that lie at most half that far outside, and a
// margin of 5 %: the rule of data/plot, so that pages and terminals show the same. All finite values where
// the percentiles are equal.
ChartAxis RobustAxis(absl::Span<const Summary* const> series);

// What of a series is not on the axis.
struct Clipped {
  std::int64_t above = 0, below = 0;
};
Clipped ClippedBy(const ChartAxis& axis, const Summary& series);

struct ChartTick {
  double value;
  std::string label;
};

// At most `most` round values within the axis, with labels that tell them apart, in a unit that suits them
// all: seconds as "1.5 ms", bytes as "64 MiB", others as "1.2", "41k".
std::vector<ChartTick> ChartTicks(const ChartAxis& axis, const std::string& units, int most);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PAGES_CHART_AXIS_H_
