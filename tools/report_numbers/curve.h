// A long series as what a picture can show, without losing extremes.
#ifndef PLAIT_TOOLS_REPORT_NUMBERS_CURVE_H_
#define PLAIT_TOOLS_REPORT_NUMBERS_CURVE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace plait::report {

struct CurvePoint {
  double draw = 0;                       // the middle one of those that the point stands for
  double low = 0, middle = 0, high = 0;  // least, median and largest finite value; all NaN: a gap
};

enum class MarkKind { kNaN, kPositiveInfinity, kNegativeInfinity };

struct Mark {
  double draw;
  MarkKind kind;
};

struct Curve {
  std::vector<CurvePoint> points;  // ascending in draw
  std::vector<Mark> marks;         // where values are not finite; at most one of a kind for each point
  std::int64_t draws_per_point = 1;
};

// `values[i]` belongs to draw first_draw + i. At most `most_points` points: where there are more values, each
// point stands for as many consecutive ones. NaN before the first and after the last value are neither points
// nor marks (the metric was not there yet, or no longer); with `sparse` the others are not either.
Curve Thinned(absl::Span<const double> values, double first_draw, std::int64_t most_points, bool sparse);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_NUMBERS_CURVE_H_
