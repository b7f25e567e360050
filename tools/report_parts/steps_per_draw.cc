#include "tools/report_parts/steps_per_draw.h"

#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "tools/report_parts/time_units.h"

namespace plait::report {
namespace {

std::int64_t WholeAttribute(const data::HistoryTable& table, const char* name) {
  std::int64_t value = 0;
  return absl::SimpleAtoi(table.Attribute(name), &value) ? value : 0;
}

// Draws at which the run went on after an interruption; files of earlier versions tell only the last.
std::set<std::int64_t> ResumedAt(const data::HistoryTable& table) {
  std::set<std::int64_t> resumed = {WholeAttribute(table, "resumed_at_draw")};
  for (const absl::string_view text :
       absl::StrSplit(table.Attribute("resumed_at_draws"), ' ', absl::SkipEmpty())) {
    std::int64_t draw = 0;
    if (absl::SimpleAtoi(text, &draw)) resumed.insert(draw);
  }
  resumed.erase(0);  // BeganAtStep tells what draw 0 covers
  return resumed;
}

}  // namespace

std::int64_t BeganAtStep(const data::HistoryTable& table) {
  return table.is_history() ? WholeAttribute(table, "began_at_step") : 0;
}

absl::StatusOr<std::vector<double>> StepsPerDraw(const data::HistoryTable& table) {
  const data::TableMetric* step = table.Find("step");
  if (!table.is_history() || step == nullptr || step->is_vector) return std::vector<double>();
  PLAIT_ASSIGN_OR_RETURN(std::vector<double> steps, table.Column("step"));
  const std::set<std::int64_t> resumed = ResumedAt(table);
  double before = BeganAtStep(table) > 0 ? kNaN : 0;
  for (std::size_t draw = 0; draw < steps.size(); ++draw) {
    const double covered = steps[draw] - std::exchange(before, steps[draw]);
    // Steps before the interruption count in some sums and not in others; one step is all of itself.
    const bool partial = resumed.count(static_cast<std::int64_t>(draw)) > 0 && covered != 1;
    steps[draw] = covered > 0 && !partial ? covered : kNaN;
  }
  return steps;
}

bool IsSumOverSteps(const data::TableMetric& metric) {
  for (const char* messages : {"comm_bytes_", "comm_in_flight_", "comm_exposed_"}) {
    if (absl::StartsWith(metric.name, messages)) return true;
  }
  const bool is_time = SecondsIn(metric.units) > 0 && absl::StartsWith(metric.name, "dt");
  return is_time && (absl::StrContains(metric.long_name, "epoch") ||
                     absl::StrContains(metric.long_name, "since the last"));
}

Summary SummarizePerStep(std::vector<double> values, absl::Span<const double> steps) {
  double sum = 0, covered = 0;
  for (std::size_t draw = 0; draw < values.size(); ++draw) {
    const double value = std::exchange(values[draw], values[draw] / steps[draw]);
    if (!std::isfinite(values[draw])) continue;
    sum += value;
    covered += steps[draw];
  }
  Summary summary = Summarize(std::move(values));
  if (covered > 0) summary.mean = sum / covered;
  return summary;
}

}  // namespace plait::report
