// What a picture shows of a plot: axes, thinned curves, marks at the edges, and notes on what is not shown.
// Private to data/plot.
#ifndef PLAIT_DATA_PLOT_CURVE_H_
#define PLAIT_DATA_PLOT_CURVE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/plot/axis.h"
#include "data/plot/plot.h"

namespace plait::data {

// On the axes: 0 at the left and the bottom, 1 at the right and the top.
struct Position {
  double x, y;
};

// Stretches between gaps. A stretch of one point has no line.
using Stretch = std::vector<Position>;

struct Curve {
  std::string name = "";
  bool few_points = false;  // a mark on each can be told apart
  std::vector<Stretch> stretches = {};
  // Positions x in [0, 1] of values beyond the top and the bottom, and of NaN.
  std::vector<double> above = {}, below = {}, not_a_number = {};
};

struct View {
  Axis x, y;
  std::vector<Curve> curves = {};
  std::vector<std::string> notes = {};
};

// `resolution`: how many positions in x the picture can tell apart; a curve keeps at most four points (first,
// least, greatest, last) in each such part of its length. INVALID_ARGUMENT: x and y differ in length.
absl::StatusOr<View> ViewOf(const Plot& plot, int resolution);

// "dt [s]"; empty and "1" units are left out.
std::string Labelled(const std::string& label, const std::string& unit);

}  // namespace plait::data

#endif  // PLAIT_DATA_PLOT_CURVE_H_
