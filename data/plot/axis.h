// Axes of plots: range and ticks.
#ifndef PLAIT_DATA_PLOT_AXIS_H_
#define PLAIT_DATA_PLOT_AXIS_H_

#include <string>
#include <vector>

#include "absl/types/span.h"

namespace plait::data {

struct Axis {
  double low = 0;
  double high = 1;
  bool logarithmic = false;  // low and high are positive
  std::string unit = "";     // tick labels of "s" and "bytes" have a unit prefix: "1.5 ms"
  bool whole = false;        // ticks are whole numbers: steps, rows

  // 0 at `low`, 1 at `high`. NaN for NaN, and for values <= 0 on a logarithmic axis.
  double Position(double value) const;
};

struct Tick {
  double value;
  std::string label;
};

// At most `most` (>= 2) round values within the axis, with distinct labels.
std::vector<Tick> Ticks(const Axis& axis, int most);

enum class AxisRange {
  kExact,       // from the smallest to the largest value
  kWithMargin,  // the same, with a margin of 5 %
  // The union of percentiles 1 to 99 of each series, extended to values at most half that range beyond it, with
  // the margin. Series of fewer than 20 values count completely. All values if that union is a single value
  // (constant except for outliers).
  kRobust,
};

// The axis for `values`, one entry per series. Only finite values count, on a logarithmic axis only positive
// ones; [0, 1] if there are none.
Axis AxisFor(absl::Span<const std::vector<double>* const> values, bool logarithmic, AxisRange range);

}  // namespace plait::data

#endif  // PLAIT_DATA_PLOT_AXIS_H_
