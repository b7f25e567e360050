// What a plot shows: axes, subsampled curves, marks at the edges, and notes on what is not shown. Private to
// data/plot.
#ifndef PLAIT_DATA_PLOT_VIEW_H_
#define PLAIT_DATA_PLOT_VIEW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/plot/axis.h"
#include "data/plot/plot.h"

namespace plait::data {

// Positions on the axes: 0 at the left and the bottom, 1 at the right and the top. A point stands for
// Curve::values_per_point consecutive values: their minimum, median and maximum.
struct CurvePoint {
  double x;
  double low, middle, high;
};

struct Curve {
  std::string name = "";
  std::int64_t values_per_point = 1;
  bool few_points = false;  // few enough to mark each point
  // Runs of points without a gap between them.
  std::vector<std::vector<CurvePoint>> stretches = {};
  // Positions x of values beyond the top and the bottom, and of NaN.
  std::vector<double> above = {}, below = {}, not_a_number = {};
};

struct View {
  Axis x, y;
  std::vector<Curve> curves = {};
  std::vector<std::string> notes = {};
};

// Curves have at most `resolution` points each. INVALID_ARGUMENT: x and y of a series differ in length.
absl::StatusOr<View> ViewOf(const Plot& plot, int resolution);

// "dt [K]"; without the unit if it is "s" or "bytes", which tick labels show, "" or "1".
std::string AxisLabel(const std::string& label, const std::string& unit);

}  // namespace plait::data

#endif  // PLAIT_DATA_PLOT_VIEW_H_
