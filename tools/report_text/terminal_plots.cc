#include "tools/report_text/terminal_plots.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "tools/report_text/number_text.h"

namespace plait::report {
namespace {

bool AnyHas(absl::Span<const RunNumbers> runs, const std::string& metric) {
  return std::any_of(runs.begin(), runs.end(),
                     [&](const RunNumbers& run) { return run.Find(metric) != nullptr; });
}

double ValueOf(MarkKind kind) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return kind == MarkKind::kNaN ? kNaN : kind == MarkKind::kPositiveInfinity ? kInfinity : -kInfinity;
}

data::Series SeriesOf(const std::string& name, const Curve& curve) {
  std::vector<std::pair<double, double>> points;
  for (const CurvePoint& point : curve.points) {
    if (!std::isnan(point.middle)) points.emplace_back(point.draw, point.middle);
  }
  for (const Mark& mark : curve.marks) points.emplace_back(mark.draw, ValueOf(mark.kind));
  std::stable_sort(points.begin(), points.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  data::Series series = {.name = name};
  for (const auto& [draw, value] : points) {
    series.x.push_back(draw);
    series.y.push_back(value);
  }
  return series;
}

data::Plot PlotOf(absl::Span<const RunNumbers> runs, const std::string& metric) {
  data::Plot plot = {.name = metric, .title = metric, .x_label = "draw", .y_label = metric};
  std::int64_t draws_per_point = 1;
  for (const RunNumbers& run : runs) {
    const MetricNumbers* numbers = run.Find(metric);
    if (numbers == nullptr) continue;
    plot.unit = numbers->metric.units;
    plot.series.push_back(SeriesOf(run.label, numbers->curve));
    draws_per_point = std::max(draws_per_point, numbers->curve.draws_per_point);
  }
  if (draws_per_point > 1) {
    absl::StrAppend(&plot.title, ", medians of ", Count(draws_per_point), " draws");
  }
  return plot;
}

}  // namespace

absl::StatusOr<std::string> TerminalPlots(absl::Span<const RunNumbers> runs,
                                          const std::vector<std::string>& metrics,
                                          const data::TextStyle& style) {
  std::vector<data::Plot> plots;
  for (const std::string& metric : metrics) {
    if (AnyHas(runs, metric)) plots.push_back(PlotOf(runs, metric));
  }
  if (plots.empty()) return std::string();
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::string> pictures, data::RenderTexts(plots, style));
  return absl::StrJoin(pictures, "\n");
}

}  // namespace plait::report
