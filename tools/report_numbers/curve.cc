#include "tools/report_numbers/curve.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/report_numbers/summary.h"

namespace plait::report {
namespace {

void AddMarks(absl::Span<const double> values, double draw, bool sparse, Curve& curve) {
  std::array<std::int64_t, 3> first = {-1, -1, -1};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i]) || (sparse && std::isnan(values[i]))) continue;
    const MarkKind kind = std::isnan(values[i]) ? MarkKind::kNaN
                          : values[i] > 0       ? MarkKind::kPositiveInfinity
                                                : MarkKind::kNegativeInfinity;
    std::int64_t& place = first[static_cast<int>(kind)];
    if (place >= 0) continue;
    place = i;
    curve.marks.push_back({draw + static_cast<double>(i), kind});
  }
}

CurvePoint PointOf(absl::Span<const double> values, double draw) {
  std::vector<double> finite;
  for (const double value : values) {
    if (std::isfinite(value)) finite.push_back(value);
  }
  const double middle_draw = draw + static_cast<double>(values.size() - 1) / 2;
  if (finite.empty()) return {middle_draw, kNaN, kNaN, kNaN};
  const auto [low, high] = std::minmax_element(finite.begin(), finite.end());
  const double least = *low, largest = *high;
  return {middle_draw, least, Quantile(finite, 0.5), largest};
}

}  // namespace

Curve Thinned(absl::Span<const double> values, double first_draw, std::int64_t most_points, bool sparse) {
  const auto is_there = [](double value) { return !std::isnan(value); };
  const auto begin = std::find_if(values.begin(), values.end(), is_there);
  const auto end = std::find_if(values.rbegin(), values.rend(), is_there).base();
  Curve curve;
  if (begin >= end) return curve;
  const std::int64_t count = end - begin;
  curve.draws_per_point = (count + most_points - 1) / most_points;
  for (std::int64_t at = 0; at < count; at += curve.draws_per_point) {
    const std::int64_t size = std::min(curve.draws_per_point, count - at);
    const absl::Span<const double> part(&*begin + at, size);
    const double draw = first_draw + static_cast<double>(begin - values.begin() + at);
    AddMarks(part, draw, sparse, curve);
    const CurvePoint point = PointOf(part, draw);
    if (!sparse || !std::isnan(point.middle)) curve.points.push_back(point);
  }
  return curve;
}

}  // namespace plait::report
