#include "tools/report_parts/run_plots.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "tools/report_parts/time_units.h"

namespace plait::report {
namespace {

// In the units of `metric`, from its first to its last value; of a sparse metric, such as one per epoch, only the draws
// that have a value.
absl::StatusOr<data::Series> SeriesOf(const RunNumbers& run, const data::TableMetric& metric) {
  data::Series series = {.name = run.label};
  const MetricNumbers* numbers = run.Find(metric.name);
  if (numbers == nullptr || numbers->summary.last_place < 0) return series;
  const double factor = FactorBetween(numbers->metric, metric);
  if (factor == 0) return series;
  PLAIT_ASSIGN_OR_RETURN(const std::vector<double> column, run.table->Column(metric.name));
  const Summary& summary = numbers->summary;
  for (std::int64_t i = summary.first_place; i <= summary.last_place; ++i) {
    const double value = column[run.skipped + i];
    if (summary.sparse() && std::isnan(value)) continue;
    series.x.push_back(static_cast<double>(run.skipped + i));
    series.y.push_back(factor * value);
  }
  return series;
}

}  // namespace

absl::StatusOr<data::Plot> PlotOf(absl::Span<const RunNumbers> runs, const std::string& metric) {
  data::Plot plot = {.name = metric, .title = metric, .x_label = "draw", .y_label = metric};
  const MetricNumbers* first = FirstNumbers(runs, metric);
  if (first == nullptr) return plot;
  plot.unit = first->metric.units;
  for (const RunNumbers& run : runs) {
    PLAIT_ASSIGN_OR_RETURN(plot.series.emplace_back(), SeriesOf(run, first->metric));
  }
  return plot;
}

absl::StatusOr<data::HeatMap> HeatMapOf(const RunNumbers& run, const data::TableMetric& metric) {
  data::HeatMap map = {.name = metric.name,
                       .title = metric.name,
                       .x_label = "draw",
                       .y_label = metric.dimension,
                       .value_label = metric.long_name,
                       .unit = metric.units};
  const std::int64_t draws = run.draws - run.skipped;
  PLAIT_ASSIGN_OR_RETURN(const std::vector<double> rows, run.table->Rows(metric.name, run.skipped, draws));
  for (std::int64_t draw = 0; draw < draws; ++draw) map.x.push_back(static_cast<double>(run.skipped + draw));
  for (std::int64_t entry = 0; entry < metric.width; ++entry) {
    for (std::int64_t draw = 0; draw < draws; ++draw) map.values.push_back(rows[draw * metric.width + entry]);
  }
  return map;
}

absl::StatusOr<std::string> TerminalPlots(absl::Span<const RunNumbers> runs,
                                          const std::vector<std::string>& metrics,
                                          const data::TextStyle& style) {
  std::vector<std::string> texts;
  for (const std::string& metric : metrics) {
    const auto has_it = [&](const RunNumbers& run) { return run.Find(metric) != nullptr; };
    if (std::none_of(runs.begin(), runs.end(), has_it)) continue;
    PLAIT_ASSIGN_OR_RETURN(const data::Plot plot, PlotOf(runs, metric));
    PLAIT_ASSIGN_OR_RETURN(texts.emplace_back(), data::RenderText(plot, style));
  }
  return absl::StrJoin(texts, "\n");
}

}  // namespace plait::report
