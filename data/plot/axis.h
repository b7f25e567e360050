// Where values stand on an axis, and its ticks. Private to data/plot.
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
  bool bytes = false;

  // 0 at `low`, 1 at `high`, beyond them outside. NaN for what has no place: NaN itself, and values that are
  // not positive on a logarithmic axis.
  double Position(double value) const;
};

struct Tick {
  double value;
  std::string label;
};

// Round values within the axis, at most `most` (at least 2); their labels tell them apart.
std::vector<Tick> Ticks(const Axis& axis, int most);

// From the smallest to the largest of all `values`; [0, 1] where there are none. Only finite values, and on a
// logarithmic axis only positive ones, count.
Axis FullAxis(absl::Span<const std::vector<double>* const> values, bool logarithmic);

// The axis for y values: from percentile 1 to 99 of every series, extended to values that lie at most half
// that far outside, and a margin of 5 %. Series shorter than 20 values, and those that are constant but for
// the outliers, count whole. `robust` false: everything, and the margin.
Axis AxisOfValues(absl::Span<const std::vector<double>* const> values, bool logarithmic, bool robust);

// In a sentence: three digits, "0.00213", "1.2e-7", or "1.5Ki".
std::string Short(double value, bool bytes);

}  // namespace plait::data

#endif  // PLAIT_DATA_PLOT_AXIS_H_
