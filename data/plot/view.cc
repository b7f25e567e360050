#include "data/plot/view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/quantity.h"

namespace plait::data {
namespace {

constexpr std::int64_t kFewPoints = 60;
// Positions are clamped to this far outside: lines to outliers still look vertical, and coordinates stay bounded.
constexpr double kFarOutside = 50;

enum Kind { kShown, kAbove, kBelow, kInfinite, kNotANumber, kNotPositive, kWithoutX, kKinds };

Kind KindOf(double x, double y, const View& view) {
  if (!std::isfinite(view.x.Position(x))) return kWithoutX;
  if (std::isnan(y)) return kNotANumber;
  if (std::isinf(y)) return kInfinite;
  if (view.y.logarithmic && y <= 0) return kNotPositive;
  return y > view.y.high ? kAbove : y < view.y.low ? kBelow : kShown;
}

// Count of one kind of values, and its largest value above, smallest below, else first.
struct Group {
  std::int64_t count = 0;
  double x = 0, y = 0;
};

std::array<Group, kKinds> GroupsOf(const Series& series, const View& view) {
  std::array<Group, kKinds> groups;
  for (std::size_t i = 0; i < series.y.size(); ++i) {
    const Kind kind = KindOf(series.x[i], series.y[i], view);
    Group& group = groups[kind];
    const bool extreme =
        (kind == kAbove && series.y[i] > group.y) || (kind == kBelow && series.y[i] < group.y);
    if (group.count++ == 0 || extreme) group = {group.count, series.x[i], series.y[i]};
  }
  return groups;
}

// "3 of 99 values above 2.1 ms are not shown; the largest is 247 ms at iter 99", "1 of 99 values is NaN, at
// iter 12", ...
std::string Note(Kind kind, const Group& group, const Series& series, const Plot& plot, const View& view) {
  const auto number = [&](double value) { return base::FormatQuantity(value, view.y.unit); };
  const bool one = group.count == 1;
  const std::string at = absl::StrCat(
      " at ", plot.x_label, " ",
      view.x.unit == "bytes" ? base::FormatQuantity(group.x, "bytes") : absl::StrFormat("%.10g", group.x));
  std::string note =
      absl::StrCat(plot.series.size() > 1 ? series.name + ": " : "", base::FormatCount(group.count), " of ",
                   base::FormatCount(series.y.size()), series.y.size() == 1 ? " value" : " values");
  if (kind == kAbove || kind == kBelow) {
    const bool above = kind == kAbove;
    absl::StrAppend(&note, above ? " above " : " below ", number(above ? view.y.high : view.y.low),
                    one     ? " is not shown: "
                    : above ? " are not shown; the largest is "
                            : " are not shown; the smallest is ",
                    number(group.y), at);
    return note;
  }
  if (kind == kWithoutX) {
    return absl::StrCat(note, one ? " has" : " have", " no position on the ", plot.x_label, " axis");
  }
  const char* what = kind == kInfinite     ? "infinite"
                     : kind == kNotANumber ? "NaN"
                                           : "not above 0 and not on the log axis";
  return absl::StrCat(note, one ? " is " : " are ", what, one ? "," : ", the first", at);
}

void AddNotes(const Plot& plot, const Series& series, View& view) {
  const std::array<Group, kKinds> groups = GroupsOf(series, view);
  for (int kind = kShown + 1; kind < kKinds; ++kind) {
    if (groups[kind].count == 0) continue;
    view.notes.push_back(Note(static_cast<Kind>(kind), groups[kind], series, plot, view));
  }
}

// At most one mark per distinguishable position.
void AddMark(std::vector<double>& marks, double x, int resolution) {
  if (x < 0 || x > 1) return;
  if (marks.empty() || std::abs(x - marks.back()) * resolution >= 1) marks.push_back(x);
}

// The values [begin, end) as one point; its y are NaN if none of them has a position.
CurvePoint Subsampled(const Series& series, const View& view, std::size_t begin, std::size_t end) {
  std::vector<double> y;
  for (std::size_t i = begin; i < end; ++i) {
    const double position = view.y.Position(series.y[i]);
    if (std::isfinite(position)) y.push_back(std::clamp(position, -kFarOutside, 1 + kFarOutside));
  }
  const double x = (view.x.Position(series.x[begin]) + view.x.Position(series.x[end - 1])) / 2;
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (y.empty()) return {x, kNone, kNone, kNone};
  std::nth_element(y.begin(), y.begin() + (y.size() - 1) / 2, y.end());
  const double median = y[(y.size() - 1) / 2];
  const auto [low, high] = std::minmax_element(y.begin(), y.end());
  return {x, *low, median, *high};
}

Curve CurveOf(const Series& series, const View& view, int resolution) {
  const std::size_t count = series.y.size();
  Curve curve = {.name = series.name};
  curve.few_points = static_cast<std::int64_t>(count) <= kFewPoints;
  const std::size_t step = (count + resolution - 1) / std::max(1, resolution);
  curve.values_per_point = std::max<std::int64_t>(1, step);
  bool gap = true;
  for (std::size_t i = 0; i < count; i += step) {
    const CurvePoint point = Subsampled(series, view, i, std::min(count, i + step));
    if (!std::isfinite(point.x)) continue;
    const bool shown = std::isfinite(point.middle);
    if (shown && gap) curve.stretches.emplace_back();
    if (shown) curve.stretches.back().push_back(point);
    gap = !shown;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const double x = view.x.Position(series.x[i]), value = series.y[i];
    const Kind kind = KindOf(series.x[i], value, view);
    if (kind == kNotANumber) AddMark(curve.not_a_number, x, resolution);
    if (kind == kAbove || (kind == kInfinite && value > 0)) AddMark(curve.above, x, resolution);
    if (kind == kBelow || kind == kNotPositive || (kind == kInfinite && value < 0)) {
      AddMark(curve.below, x, resolution);
    }
  }
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
  View view = {.x = AxisFor(x, plot.log_x, AxisRange::kExact),
               .y = AxisFor(y, plot.log_y, plot.robust ? AxisRange::kRobust : AxisRange::kWithMargin)};
  view.x.unit = plot.x_unit;
  view.y.unit = plot.unit;
  std::int64_t values_per_point = 1;
  for (const Series& series : plot.series) {
    view.curves.push_back(CurveOf(series, view, resolution));
    AddNotes(plot, series, view);
    values_per_point = std::max(values_per_point, view.curves.back().values_per_point);
  }
  if (values_per_point > 1) {
    view.notes.push_back(
        absl::StrCat("line: medians of ", base::FormatCount(values_per_point), " values; band: their range"));
  }
  const auto is_empty = [](const Series& series) { return series.y.empty(); };
  if (std::all_of(plot.series.begin(), plot.series.end(), is_empty)) view.notes.push_back("no values");
  return view;
}

std::string AxisLabel(const std::string& label, const std::string& unit) {
  if (unit.empty() || unit == "1" || unit == "s" || unit == "bytes") return label;
  return label.empty() ? absl::StrCat("[", unit, "]") : absl::StrCat(label, " [", unit, "]");
}

}  // namespace plait::data
