#include "data/plot/curve.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace plait::data {
namespace {

constexpr std::int64_t kFewPoints = 60;
// Far outside, a line to an outlier is steep all the same, and drawing stays within its numbers.
constexpr double kFarOutside = 50;

// Values of one kind that the picture does not show as points of the line.
struct Outside {
  std::int64_t count = 0;
  double first_x = 0;
  double extreme = 0;
  double extreme_x = 0;

  void Add(double x, double y, bool more_extreme) {
    if (count++ == 0) first_x = x;
    if (count == 1 || more_extreme) {
      extreme = y;
      extreme_x = x;
    }
  }
};

struct Census {
  std::int64_t values = 0;
  Outside above, below, infinite, not_a_number, not_positive, without_x;
};

Census Count(const Series& series, const View& view) {
  Census c;
  c.values = static_cast<std::int64_t>(series.y.size());
  for (std::size_t i = 0; i < series.y.size(); ++i) {
    const double x = series.x[i], y = series.y[i];
    if (std::isnan(view.x.Position(x)) || std::isinf(x)) {
      c.without_x.Add(x, y, false);
    } else if (std::isnan(y)) {
      c.not_a_number.Add(x, y, false);
    } else if (std::isinf(y)) {
      c.infinite.Add(x, y, false);
    } else if (view.y.logarithmic && y <= 0) {
      c.not_positive.Add(x, y, false);
    } else if (y > view.y.high) {
      c.above.Add(x, y, y > c.above.extreme);
    } else if (y < view.y.low) {
      c.below.Add(x, y, y < c.below.extreme);
    }
  }
  return c;
}

class NoteWriter {
 public:
  NoteWriter(const Plot& plot, const View& view, const Series& series, std::int64_t values)
      : plot_(plot), view_(view), values_(values) {
    if (plot.series.size() > 1) prefix_ = series.name + ": ";
  }

  std::string Clipped(const Outside& o, bool above) const {
    const std::string edge = Short(above ? view_.y.high : view_.y.low, view_.y.bytes);
    const std::string beyond = absl::StrCat(above ? "above " : "below ", edge);
    const std::string extreme = absl::StrCat(Short(o.extreme, view_.y.bytes), " ", At(o.extreme_x));
    if (o.count == 1) return absl::StrCat(Share(1), " ", beyond, " is not shown: ", extreme);
    return absl::StrCat(Share(o.count), " ", beyond, " are not shown; the ", above ? "largest" : "smallest",
                        " is ", extreme);
  }

  // "2 of 99 values are NaN, the first at iter 12"
  std::string Are(const Outside& o, absl::string_view what) const {
    if (o.count == 1) return absl::StrCat(Share(1), " is ", what, ", ", At(o.first_x));
    return absl::StrCat(Share(o.count), " are ", what, ", the first ", At(o.first_x));
  }

  std::string WithoutX(const Outside& o) const {
    return absl::StrCat(Share(o.count), o.count == 1 ? " has" : " have", " no place on the ", plot_.x_label,
                        " axis");
  }

 private:
  std::string Share(std::int64_t count) const {
    return absl::StrCat(prefix_, count, " of ", values_, values_ == 1 ? " value" : " values");
  }
  std::string At(double x) const {
    return absl::StrCat("at ", plot_.x_label,
                        view_.x.bytes ? absl::StrCat(" ", Short(x, true)) : absl::StrFormat(" %.10g", x));
  }

  const Plot& plot_;
  const View& view_;
  std::int64_t values_;
  std::string prefix_;
};

void AddNotes(const Plot& plot, const Series& series, View& view) {
  const Census c = Count(series, view);
  const NoteWriter write(plot, view, series, c.values);
  if (c.values == 0) view.notes.push_back(plot.series.size() > 1 ? series.name + ": no values" : "no values");
  if (c.above.count > 0) view.notes.push_back(write.Clipped(c.above, true));
  if (c.below.count > 0) view.notes.push_back(write.Clipped(c.below, false));
  if (c.infinite.count > 0) view.notes.push_back(write.Are(c.infinite, "infinite"));
  if (c.not_a_number.count > 0) view.notes.push_back(write.Are(c.not_a_number, "NaN"));
  if (c.not_positive.count > 0)
    view.notes.push_back(write.Are(c.not_positive, "not above 0 and not on the log axis"));
  if (c.without_x.count > 0) view.notes.push_back(write.WithoutX(c.without_x));
}

// One mark per position that can be told apart.
void AddMark(std::vector<double>& marks, double x, int resolution) {
  if (x < 0 || x > 1) return;
  if (marks.empty() || std::abs(x - marks.back()) * resolution >= 1) marks.push_back(x);
}

void AddMarks(const Series& series, const View& view, int resolution, Curve& curve) {
  for (std::size_t i = 0; i < series.y.size(); ++i) {
    const double x = view.x.Position(series.x[i]), y = view.y.Position(series.y[i]);
    if (!std::isfinite(x)) continue;
    if (std::isnan(series.y[i])) AddMark(curve.not_a_number, x, resolution);
    if (y > 1) AddMark(curve.above, x, resolution);
    if (y < 0 || (std::isnan(y) && !std::isnan(series.y[i]))) AddMark(curve.below, x, resolution);
  }
}

// The points of [begin, end) that a narrow strip needs: first, least, greatest and last, in their order.
// Gaps within are lost unless nothing else is there.
void AddStrip(const std::vector<Position>& points, std::size_t begin, std::size_t end,
              std::vector<Position>& out) {
  std::vector<std::size_t> drawn;
  std::size_t least = end, greatest = end, first = end, last = end;
  for (std::size_t i = begin; i < end; ++i) {
    if (!std::isfinite(points[i].y)) continue;
    if (first == end) first = least = greatest = i;
    last = i;
    if (points[i].y < points[least].y) least = i;
    if (points[i].y > points[greatest].y) greatest = i;
  }
  if (first == end) return out.push_back(points[begin]);
  drawn = {first, least, greatest, last};
  std::sort(drawn.begin(), drawn.end());
  drawn.erase(std::unique(drawn.begin(), drawn.end()), drawn.end());
  for (const std::size_t i : drawn) out.push_back(points[i]);
}

std::vector<Position> Thinned(const std::vector<Position>& points, int strips) {
  const std::size_t n = points.size(), count = static_cast<std::size_t>(strips);
  if (n <= 4 * count) return points;
  std::vector<Position> kept;
  kept.reserve(4 * count);
  for (std::size_t s = 0; s < count; ++s) AddStrip(points, n * s / count, n * (s + 1) / count, kept);
  return kept;
}

std::vector<Stretch> Stretches(const std::vector<Position>& points) {
  std::vector<Stretch> stretches;
  bool open = false;
  for (const Position& point : points) {
    if (!std::isfinite(point.y)) {
      open = false;
      continue;
    }
    if (!open) stretches.emplace_back();
    open = true;
    stretches.back().push_back(point);
  }
  return stretches;
}

Curve CurveOf(const Series& series, const View& view, int resolution) {
  Curve curve = {.name = series.name};
  curve.few_points = static_cast<std::int64_t>(series.y.size()) <= kFewPoints;
  std::vector<Position> points;
  points.reserve(series.y.size());
  for (std::size_t i = 0; i < series.y.size(); ++i) {
    const double x = view.x.Position(series.x[i]);
    double y = view.y.Position(series.y[i]);
    if (!std::isfinite(x)) continue;
    if (std::isfinite(y)) y = std::clamp(y, -kFarOutside, 1 + kFarOutside);
    points.push_back({x, y});
  }
  curve.stretches = Stretches(Thinned(points, resolution));
  AddMarks(series, view, resolution, curve);
  return curve;
}

}  // namespace

absl::StatusOr<View> ViewOf(const Plot& plot, int resolution) {
  std::vector<const std::vector<double>*> x, y;
  for (const Series& series : plot.series) {
    if (series.x.size() != series.y.size()) {
      return absl::InvalidArgumentError(absl::StrFormat("plot %s, series %s: %d values of x but %d of y",
                                                        plot.name, series.name, series.x.size(),
                                                        series.y.size()));
    }
    x.push_back(&series.x);
    y.push_back(&series.y);
  }
  View view = {.x = FullAxis(x, plot.log_x), .y = AxisOfValues(y, plot.log_y, plot.robust)};
  view.x.bytes = plot.x_in_bytes;
  view.y.bytes = plot.y_in_bytes;
  for (const Series& series : plot.series) {
    view.curves.push_back(CurveOf(series, view, resolution));
    AddNotes(plot, series, view);
  }
  if (plot.series.empty()) view.notes.push_back("no values");
  return view;
}

std::string Labelled(const std::string& label, const std::string& unit) {
  if (unit.empty() || unit == "1") return label;
  return label.empty() ? absl::StrCat("[", unit, "]") : absl::StrCat(label, " [", unit, "]");
}

}  // namespace plait::data
