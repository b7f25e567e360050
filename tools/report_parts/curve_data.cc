#include "tools/report_parts/curve_data.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tools/report_parts/steps_per_draw.h"
#include "tools/report_parts/time_units.h"

namespace plait::report {
namespace {

using Json = nlohmann::ordered_json;
using Column = std::vector<double>;

bool CountsSteps(const std::string& name) { return IsCalled(name, "iter") || IsCalled(name, "step"); }

bool Varies(const RunNumbers& run, const std::string& name) {
  const MetricNumbers* numbers = run.Find(name);
  if (numbers == nullptr) return false;
  return numbers->summary.infinities() > 0 || numbers->summary.min < numbers->summary.max;
}

Json NumberJson(double value) {
  constexpr double kExactIntegers = 1e15;
  if (std::isnan(value)) return nullptr;
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  if (value == std::floor(value) && std::abs(value) < kExactIntegers) return static_cast<std::int64_t>(value);
  return value;
}

double SevenDigits(double value) { return std::strtod(absl::StrFormat("%.7g", value).c_str(), nullptr); }

// The draws that are not skipped, `part` of them to a point.
struct Points {
  std::int64_t first = 0, draws = 0, part = 1;
  std::int64_t count() const { return (draws + part - 1) / part; }
};

Points PointsOf(const RunNumbers& run) {
  Points points = {.first = run.skipped, .draws = run.draws - run.skipped};
  points.part = (points.draws + kMostPoints - 1) / kMostPoints;
  return points;
}

Json PlacesJson(const Column& column, const Points& points) {
  Json places = Json::array();
  for (std::int64_t i = 0; i < points.count(); ++i) {
    const std::int64_t begin = i * points.part, end = std::min(begin + points.part, points.draws);
    places.push_back(NumberJson(column[points.first + (begin + end - 1) / 2]));
  }
  return places;
}

Json CurveOf(const Column& column, const Points& points, bool sparse) {
  Json y = Json::array(), low = Json::array(), high = Json::array();
  const auto begin = column.begin() + points.first;
  for (std::int64_t i = 0; i < points.draws; i += points.part) {
    if (points.part == 1) {
      y.push_back(NumberJson(begin[i]));
      continue;
    }
    Column values(begin + i, begin + std::min(i + points.part, points.draws));
    values.erase(std::remove_if(values.begin(), values.end(), [](double v) { return std::isnan(v); }),
                 values.end());
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    low.push_back(NumberJson(values.empty() ? kNaN : SevenDigits(*least)));
    high.push_back(NumberJson(values.empty() ? kNaN : SevenDigits(*most)));
    values.erase(std::remove_if(values.begin(), values.end(), [](double v) { return std::isinf(v); }),
                 values.end());
    y.push_back(NumberJson(SevenDigits(Quantile(values, 0.5))));
  }
  Json curve = {{"y", std::move(y)}};
  if (points.part > 1) {
    curve["low"] = std::move(low);
    curve["high"] = std::move(high);
  }
  curve["sparse"] = sparse;
  return curve;
}

// The first of these scalars that the run has, or nullptr.
const data::TableMetric* ScalarCalled(const RunNumbers& run, absl::Span<const char* const> names) {
  for (const char* name : names) {
    for (const data::TableMetric& metric : run.table->metrics()) {
      if (!metric.is_vector && IsCalled(metric.name, name)) return &metric;
    }
  }
  return nullptr;
}

// Empty if the run has no such metric.
absl::StatusOr<Column> ColumnCalled(const RunNumbers& run, absl::Span<const char* const> names) {
  const data::TableMetric* metric = ScalarCalled(run, names);
  if (metric == nullptr) return Column();
  return run.table->Column(metric->name);
}

// Draws without a number get one on the line through the nearest two that have one; of a single one, one apart.
Column WithoutGaps(Column numbers) {
  std::vector<std::size_t> known;
  for (std::size_t draw = 0; draw < numbers.size(); ++draw) {
    if (!std::isnan(numbers[draw])) known.push_back(draw);
  }
  if (known.empty() || known.size() == numbers.size()) return numbers;
  for (std::size_t draw = 0, next = 0; draw < numbers.size(); ++draw) {
    if (!std::isnan(numbers[draw])) {
      ++next;
      continue;
    }
    const std::size_t right = known.size() == 1 ? 0 : std::clamp<std::size_t>(next, 1, known.size() - 1);
    const std::size_t left = right == 0 ? 0 : right - 1, from = known[left], to = known[right];
    const double slope = from == to ? 1 : (numbers[to] - numbers[from]) / double(to - from);
    numbers[draw] = numbers[from] + slope * (double(draw) - double(from));
  }
  return numbers;
}

// Whether the numbers can be places along an axis.
bool IsAxis(const Column& numbers) {
  return !numbers.empty() && std::is_sorted(numbers.begin(), numbers.end()) &&
         std::all_of(numbers.begin(), numbers.end(), [](double v) { return std::isfinite(v); });
}

// "3 of 2,800 values are NaN or missing, the first at step 100."; "" if none is. A sparse metric has none: it is given rarely.
std::string NanNote(const MetricNumbers& numbers, const Column& column, const Column& steps,
                    std::int64_t skipped) {
  const Summary& summary = numbers.summary;
  const auto step_of = [&](std::int64_t draw) {
    const double step = steps[draw];
    return step == std::round(step) && std::abs(step) < 1e15 ? base::FormatCount(std::llround(step))
                                                             : absl::StrFormat("%.10g", step);
  };
  std::string note;
  if (!summary.sparse() && summary.inner_nan() > 0) {
    const auto begin = column.begin() + skipped + summary.first_place;
    const auto first = std::find_if(begin, column.end(), [](double v) { return std::isnan(v); });
    const std::int64_t of = summary.last_place - summary.first_place + 1;
    note = absl::StrCat(base::FormatCount(summary.inner_nan()), " of ", base::FormatCount(of),
                        summary.inner_nan() == 1 ? " values is NaN or missing, at step "
                                                 : " values are NaN or missing, the first at step ",
                        step_of(first - column.begin()), ".");
  }
  if (numbers.nan_since < 0) return note;
  return absl::StrCat(note, note.empty() ? "" : " ", "NaN or missing from step ", step_of(numbers.nan_since),
                      " on.");
}

Column SumSoFar(Column column, double sum = 0) {
  for (double& value : column) value = sum += std::isfinite(value) ? value : 0;
  return column;
}

// A step before the file's first draw had as many as the first one that has any.
Column TokensSoFar(Column tokens, std::int64_t steps_before) {
  const auto first = std::find_if(tokens.begin(), tokens.end(), [](double n) { return std::isfinite(n); });
  const double before = first == tokens.end() ? 0 : static_cast<double>(steps_before) * *first;
  return SumSoFar(std::move(tokens), before);
}

absl::StatusOr<Json> AxesOf(const RunNumbers& run, const Column& steps, const Points& points) {
  PLAIT_ASSIGN_OR_RETURN(Column tokens, ColumnCalled(run, {"tokens"}));
  PLAIT_ASSIGN_OR_RETURN(const Column seconds, SecondsOf(run));
  Json axes = {{"step", PlacesJson(steps, points)}};
  if (!tokens.empty()) {
    axes["tokens"] = PlacesJson(TokensSoFar(std::move(tokens), BeganAtStep(*run.table)), points);
  }
  if (!seconds.empty()) axes["time"] = PlacesJson(seconds, points);
  return axes;
}

// `metrics` with the units of the charts.
absl::StatusOr<Json> RunJson(const RunNumbers& run, absl::Span<const data::TableMetric> metrics) {
  const Points points = PointsOf(run);
  PLAIT_ASSIGN_OR_RETURN(const Column steps, StepsOf(run));
  PLAIT_ASSIGN_OR_RETURN(Json axes, AxesOf(run, steps, points));
  Json curves = Json::array();
  for (const data::TableMetric& metric : metrics) {
    const MetricNumbers* numbers = run.Find(metric.name);
    const double factor = numbers == nullptr ? 0 : FactorBetween(numbers->metric, metric);
    if (factor == 0 || numbers->summary.last_place < 0) {
      curves.push_back(nullptr);
      continue;
    }
    PLAIT_ASSIGN_OR_RETURN(Column column, run.table->Column(metric.name));
    for (double& value : column) value *= factor;
    curves.push_back(CurveOf(column, points, numbers->summary.sparse()));
    const std::string note = NanNote(*numbers, column, steps, run.skipped);
    if (!note.empty()) curves.back()["note"] = note;
  }
  return Json{{"label", run.label},       {"draws", run.draws},   {"complete", run.complete},
              {"per_point", points.part}, {"x", std::move(axes)}, {"curves", std::move(curves)}};
}

}  // namespace

absl::StatusOr<Column> StepsOf(const RunNumbers& run) {
  for (const char* name : {"step", "iter"}) {
    PLAIT_ASSIGN_OR_RETURN(Column counter, ColumnCalled(run, {name}));
    counter = WithoutGaps(std::move(counter));
    if (IsAxis(counter)) return counter;
  }
  PLAIT_ASSIGN_OR_RETURN(Column steps, run.table->DrawNumbers());
  steps = WithoutGaps(std::move(steps));
  if (!IsAxis(steps)) std::iota(steps.begin(), steps.end(), 0.0);
  return steps;
}

absl::StatusOr<Column> SecondsOf(const RunNumbers& run) {
  const data::TableMetric* time = ScalarCalled(run, {"dt", "step_time"});
  const double seconds = time == nullptr ? 0 : SecondsPerUnit(*time);
  if (seconds == 0) return Column();
  PLAIT_ASSIGN_OR_RETURN(Column times, run.table->Column(time->name));
  for (double& value : times) value *= seconds;
  return SumSoFar(std::move(times));
}

ChartedMetrics ChartedOf(absl::Span<const RunNumbers> runs) {
  std::vector<std::string> names = MainMetrics(runs);
  for (const std::string& name : MetricNames(runs)) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  ChartedMetrics metrics;
  for (const std::string& name : names) {
    if (CountsSteps(name)) continue;
    const bool varies =
        std::any_of(runs.begin(), runs.end(), [&](const auto& run) { return Varies(run, name); });
    const bool has_values = std::any_of(runs.begin(), runs.end(), [&](const RunNumbers& run) {
      const MetricNumbers* numbers = run.Find(name);
      return numbers != nullptr && numbers->summary.finite > 0;
    });
    (!has_values ? metrics.without_values : varies ? metrics.drawn : metrics.constant).push_back(name);
  }
  return metrics;
}

absl::StatusOr<std::string> CurveJson(absl::Span<const RunNumbers> runs) {
  std::vector<data::TableMetric> drawn;
  for (const std::string& name : ChartedOf(runs).drawn) drawn.push_back(FirstNumbers(runs, name)->metric);
  Json of_runs = Json::array(), axes = Json::array(), metrics = Json::array();
  for (const RunNumbers& run : runs) {
    PLAIT_ASSIGN_OR_RETURN(of_runs.emplace_back(), RunJson(run, drawn));
  }
  const std::pair<const char*, const char*> known[] = {
      {"step", "count"}, {"tokens", "count"}, {"time", "elapsed"}};
  for (const auto& [name, units] : known) {
    const bool has_it = std::any_of(of_runs.begin(), of_runs.end(),
                                    [&, axis = name](const Json& run) { return run["x"].contains(axis); });
    if (has_it) axes.push_back({{"name", name}, {"label", name}, {"units", units}});
  }
  for (const data::TableMetric& metric : drawn) {
    metrics.push_back({{"name", metric.name}, {"units", metric.units}});
  }
  const Json json = {
      {"axes", std::move(axes)}, {"metrics", std::move(metrics)}, {"runs", std::move(of_runs)}};
  return absl::StrReplaceAll(json.dump(-1, ' ', false, Json::error_handler_t::replace), {{"<", "\\u003c"}});
}

}  // namespace plait::report
