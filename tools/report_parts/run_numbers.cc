#include "tools/report_parts/run_numbers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "data/history/history_table.h"
#include "tools/report_parts/comparison.h"
#include "tools/report_parts/steps_per_draw.h"
#include "tools/report_parts/summary.h"
#include "tools/report_parts/time_units.h"

namespace plait::report {
namespace {

using data::HistoryTable;
using data::TableMetric;

absl::StatusOr<std::vector<const TableMetric*>> Chosen(const HistoryTable& table,
                                                       const std::vector<std::string>& wanted) {
  std::vector<const TableMetric*> chosen;
  if (wanted.empty()) {
    for (const TableMetric& metric : table.metrics()) chosen.push_back(&metric);
    return chosen;
  }
  for (const std::string& name : wanted) {
    const auto found = std::find_if(table.metrics().begin(), table.metrics().end(),
                                    [&](const TableMetric& metric) { return IsCalled(metric.name, name); });
    for (const data::LeftOutArray& array : table.left_out()) {
      if (found != table.metrics().end() || !IsCalled(array.name, name)) continue;
      return absl::NotFoundError(base::Printable(
          absl::StrCat(table.path(), ": metric ", array.name, " is left out: ", array.reason)));
    }
    if (found == table.metrics().end()) {
      const std::string known =
          absl::StrJoin(table.metrics(), ", ",
                        [](std::string* out, const auto& metric) { absl::StrAppend(out, metric.name); });
      return absl::NotFoundError(
          base::Printable(absl::StrCat(table.path(), ": has no metric ", name, "; it has ", known)));
    }
    chosen.push_back(&*found);
  }
  return chosen;
}

// `steps` as of StepsPerDraw.
absl::Status AddMetric(const HistoryTable& table, const TableMetric& metric, const RunOptions& options,
                       const std::vector<double>& steps, RunNumbers& run) {
  if (metric.is_vector) {
    if (metric.width == 0) return absl::OkStatus();
    if (absl::StartsWith(metric.name, "expert_load_")) run.heat_maps.push_back(metric);
    if (!IsByRank(metric)) return absl::OkStatus();
    PLAIT_ASSIGN_OR_RETURN(RankNumbers ranks, ReadRanks(table, metric, options.skip));
    run.ranks.push_back(std::move(ranks));
    return absl::OkStatus();
  }
  PLAIT_ASSIGN_OR_RETURN(std::vector<double> column, table.Column(metric.name));
  column.erase(column.begin(), column.begin() + options.skip);
  MetricNumbers& numbers = run.metrics.emplace_back(MetricNumbers{metric, Summarize(column), {}});
  numbers.per_step =
      steps.empty() || !IsSumOverSteps(metric)
          ? numbers.summary
          : SummarizePerStep(std::move(column), absl::MakeConstSpan(steps).subspan(options.skip));
  return absl::OkStatus();
}

const MetricNumbers* NumbersOf(const RunNumbers& run, absl::Span<const char* const> names) {
  for (const char* name : names) {
    for (const MetricNumbers& numbers : run.metrics) {
      if (IsCalled(numbers.metric.name, name)) return &numbers;
    }
  }
  return nullptr;
}

// `amount` of each step, as a rate per second.
Rate PerSecond(std::string name, std::string what, double amount, const Summary& time, double unit_seconds) {
  const auto rate = [&](double steps_time) { return amount / (unit_seconds * steps_time); };
  return {std::move(name), std::move(what), rate(time.median), rate(time.p90), rate(time.p10)};
}

void AddRates(RunNumbers& run) {
  const MetricNumbers* time = NumbersOf(run, {"dt", "step_time"});
  const double seconds = time == nullptr ? 0 : SecondsPerUnit(time->metric);
  if (seconds > 0 && time->per_step.median > 0) {
    run.rates.push_back(PerSecond("steps", "steps per second", 1, time->per_step, seconds));
  }
  // Programs differ in what they call sps or tps (one rank or all): the metric's long name tells.
  bool counts_all_tokens = false;
  for (const char* name : {"sps", "sps_world", "tps", "tps_world", "tokens_per_second"}) {
    const MetricNumbers* rate = NumbersOf(run, {name});
    if (rate == nullptr || rate->summary.finite == 0) continue;
    const std::string& what = rate->metric.long_name;
    run.rates.push_back({name, what.empty() ? rate->metric.name : what, rate->summary.median,
                         rate->summary.p10, rate->summary.p90});
    counts_all_tokens |= absl::StartsWith(name, "t") && IsOfAllRanks(run.rates.back());
  }
  const MetricNumbers* tokens = NumbersOf(run, {"tokens"});
  // The run's own rate is the more exact one: dt may be that of rank 0.
  if (counts_all_tokens || tokens == nullptr || !(seconds > 0 && time->summary.median > 0)) return;
  run.rates.push_back(PerSecond("tokens", "tokens per second, of the median step", tokens->summary.median,
                                time->summary, seconds));
}

// The last draw at which a step was timed; the last of all where the run times none.
absl::StatusOr<std::int64_t> LastTimedDraw(const HistoryTable& table) {
  std::int64_t last = table.draws() - 1;
  for (const TableMetric& metric : table.metrics()) {
    if (metric.is_vector || !(IsCalled(metric.name, "dt") || IsCalled(metric.name, "step_time"))) continue;
    PLAIT_ASSIGN_OR_RETURN(const std::vector<double> times, table.Column(metric.name));
    while (last >= 0 && std::isnan(times[last])) --last;
    return last < 0 ? table.draws() - 1 : last;
  }
  return last;
}

// A draw without a step, such as one of a test, has no loss and none is missing.
absl::Status FindVanished(const HistoryTable& table, RunNumbers& run) {
  std::vector<MetricNumbers*> candidates;
  for (MetricNumbers& numbers : run.metrics) {
    const Summary& summary = numbers.summary;
    const bool ends = summary.last_place >= 0 && summary.last_place + 1 < summary.draws;
    if (ends && !summary.sparse()) candidates.push_back(&numbers);
  }
  if (candidates.empty()) return absl::OkStatus();
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t last_timed, LastTimedDraw(table));
  for (MetricNumbers* numbers : candidates) {
    const std::int64_t next = run.skipped + numbers->summary.last_place + 1;
    if (next <= last_timed) numbers->nan_since = next;
  }
  return absl::OkStatus();
}

AxisTraffic& AxisNamed(const std::string& axis, RunNumbers& run) {
  for (AxisTraffic& traffic : run.traffic) {
    if (traffic.axis == axis) return traffic;
  }
  run.traffic.push_back({.axis = axis});
  return run.traffic.back();
}

// Drops the columns of axes that the run's mesh does not use: nothing was ever sent along them.
void LeaveOutIdleAxes(RunNumbers& run) {
  std::set<std::string> idle;
  for (const MetricNumbers& numbers : run.metrics) {
    absl::string_view axis = numbers.metric.name;
    if (!absl::ConsumePrefix(&axis, "comm_bytes_")) continue;
    if (numbers.summary.finite == 0 || numbers.summary.max != 0) continue;
    for (const char* number : {"bytes", "in_flight", "exposed"}) {
      for (const char* suffix : {"", "_min", "_max", "_std"}) {
        idle.insert(absl::StrCat("comm_", number, "_", axis, suffix));
      }
    }
  }
  const auto is_idle = [&](const MetricNumbers& numbers) { return idle.count(numbers.metric.name) > 0; };
  run.metrics.erase(std::remove_if(run.metrics.begin(), run.metrics.end(), is_idle), run.metrics.end());
}

void AddTraffic(RunNumbers& run) {
  for (const MetricNumbers& numbers : run.metrics) {
    // Skips statistics over ranks: comm_bytes_dp_max.
    if (absl::StrContains(numbers.metric.statistic, "imum") ||
        absl::StrContains(numbers.metric.statistic, "deviation")) {
      continue;
    }
    absl::string_view name = numbers.metric.name;
    if (absl::ConsumePrefix(&name, "comm_bytes_")) {
      AxisTraffic& traffic = AxisNamed(std::string(name), run);
      traffic.bytes_per_step = numbers.per_step.median;
      traffic.total_bytes = numbers.summary.sum();
    } else if (absl::ConsumePrefix(&name, "comm_in_flight_")) {
      AxisNamed(std::string(name), run).in_flight_seconds = numbers.per_step.mean;
    } else if (absl::ConsumePrefix(&name, "comm_exposed_")) {
      AxisNamed(std::string(name), run).exposed_seconds = numbers.per_step.mean;
    }
  }
  for (AxisTraffic& traffic : run.traffic) {
    const MetricNumbers* in_flight = run.Find("comm_in_flight_" + traffic.axis);
    const MetricNumbers* exposed = run.Find("comm_exposed_" + traffic.axis);
    if (in_flight == nullptr || exposed == nullptr || !(in_flight->summary.mean > 0)) continue;
    traffic.overlap = 1 - exposed->summary.mean / in_flight->summary.mean;
  }
}

void AddNotes(const HistoryTable& table, RunNumbers& run) {
  if (run.journal_draws > 0) {
    run.notes.push_back(absl::StrCat("The run is still running or was killed: ", run.journal_draws,
                                     " draws are from its journal, beside the file."));
  } else if (!run.complete) {
    run.notes.push_back("The run is still running or was killed: it has not closed its history.");
  }
  if (const std::int64_t begun = BeganAtStep(table); begun > 0) {
    run.notes.push_back(absl::StrCat("The file begins after step ", base::FormatCount(begun),
                                     " of its run: times so far count from there on."));
  }
  if (!table.is_history()) run.notes.push_back("Written by another program; units are what its file says.");
  for (const TableMetric& metric : table.metrics()) {
    if (!metric.coordinate.empty()) {
      run.notes.push_back(absl::StrCat(metric.name, " is along ", metric.coordinate,
                                       ": each value is shown at the draw with the same number."));
    }
    if (metric.is_vector && !IsByRank(metric)) {
      run.notes.push_back(
          absl::StrCat(metric.name, " has ", metric.width, " values per draw",
                       metric.dimension.empty() ? "" : absl::StrCat(" along ", metric.dimension),
                       "; it is not summarized."));
    }
  }
  for (const data::LeftOutArray& array : table.left_out()) {
    run.notes.push_back(absl::StrCat(array.name, " is left out: ", array.reason, "."));
  }
}

void AddTimeline(RunNumbers& run) {
  const std::string trace = TracePath(run);
  if (trace.empty()) return;
  absl::StatusOr<StepTimeline> timeline = MedianStep(trace);
  if (timeline.ok()) {
    run.timeline = *std::move(timeline);
  } else {
    run.notes.push_back(absl::StrCat("No timeline: ", timeline.status().message(), "."));
  }
}

bool HasValues(absl::Span<const RunNumbers> runs, const std::string& name) {
  const MetricNumbers* numbers = FirstNumbers(runs, name);
  return numbers != nullptr && numbers->summary.last_place >= 0;
}

}  // namespace

std::string TracePath(const RunNumbers& run) {
  const std::string trace = run.Attribute("trace");
  if (trace.empty()) return "";
  return (std::filesystem::path(run.path).parent_path() / trace).string();
}

bool IsOfAllRanks(const Rate& rate) { return absl::StrContains(rate.what, "all ranks"); }

bool IsCalled(const std::string& name, const std::string& wanted) {
  return name == wanted || name == "train_" + wanted || name == "train/" + wanted;
}

const MetricNumbers* RunNumbers::Find(const std::string& name) const {
  for (const MetricNumbers& numbers : metrics) {
    if (numbers.metric.name == name) return &numbers;
  }
  return nullptr;
}

std::string RunNumbers::Attribute(const std::string& name) const {
  for (const auto& [known, value] : attributes) {
    if (known == name) return value;
  }
  return "";
}

absl::StatusOr<RunNumbers> ReadRun(const std::string& path, const RunOptions& options) {
  PLAIT_ASSIGN_OR_RETURN(HistoryTable opened, HistoryTable::Open(path));
  const auto shared = std::make_shared<const HistoryTable>(std::move(opened));
  const HistoryTable& table = *shared;
  if (options.skip >= table.draws()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has ", table.draws(), " draws, and --skip=", options.skip, " leaves none"));
  }
  RunNumbers run = {.path = path,
                    .label = path,
                    .attributes = table.attributes(),
                    .settings = SettingsOf(table.attributes()),
                    .draws = table.draws(),
                    .journal_draws = table.journal_draws(),
                    .skipped = options.skip,
                    .complete = table.complete(),
                    .is_history = table.is_history(),
                    .table = shared};
  PLAIT_ASSIGN_OR_RETURN(const std::vector<const TableMetric*> chosen, Chosen(table, options.metrics));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<double> steps, StepsPerDraw(table));
  for (const TableMetric* metric : chosen) {
    PLAIT_RETURN_IF_ERROR(AddMetric(table, *metric, options, steps, run));
  }
  if (options.metrics.empty()) LeaveOutIdleAxes(run);
  PLAIT_RETURN_IF_ERROR(FindVanished(table, run));
  AddRates(run);
  AddTraffic(run);
  AddNotes(table, run);
  if (options.timeline) AddTimeline(run);
  return run;
}

std::vector<RunNumbers> ReadRuns(const std::vector<std::string>& paths, const RunOptions& options,
                                 std::vector<absl::Status>& unreadable) {
  std::vector<RunNumbers> runs;
  for (const std::string& path : paths) {
    absl::StatusOr<RunNumbers> run = ReadRun(path, options);
    if (run.ok()) {
      runs.push_back(*std::move(run));
    } else {
      unreadable.push_back(run.status());
    }
  }
  Label(runs);
  return runs;
}

void Label(std::vector<RunNumbers>& runs) {
  const auto tail = [](const std::string& path, std::size_t parts) {
    const std::vector<std::string> all = absl::StrSplit(path, '/', absl::SkipEmpty());
    return absl::StrJoin(all.end() - std::min(parts, all.size()), all.end(), "/");
  };
  for (std::size_t i = 0; i < runs.size(); ++i) {
    constexpr std::size_t kMostParts = 32;
    std::size_t parts = 1;
    const auto clashes = [&](const RunNumbers& other) {
      return other.path != runs[i].path && tail(other.path, parts) == tail(runs[i].path, parts);
    };
    while (parts < kMostParts && std::any_of(runs.begin(), runs.end(), clashes)) ++parts;
    runs[i].label = tail(runs[i].path, parts);
  }
}

std::string Remarks(const Summary& summary, std::int64_t first_draw) {
  std::vector<std::string> remarks;
  if (summary.last_place < 0) return "no value";
  if (summary.first_place > 0) {
    remarks.push_back(absl::StrCat("from draw ", first_draw + summary.first_place, " on"));
  }
  if (summary.last_place + 1 < summary.draws) {
    remarks.push_back(absl::StrCat("none after draw ", first_draw + summary.last_place));
  }
  if (summary.sparse()) {
    remarks.push_back(absl::StrCat("in ", summary.finite + summary.infinities(), " draws"));
  } else if (summary.inner_nan() > 0) {
    remarks.push_back(absl::StrCat(summary.inner_nan(), " NaN"));
  }
  if (summary.positive_infinities > 0) remarks.push_back(absl::StrCat(summary.positive_infinities, " +Inf"));
  if (summary.negative_infinities > 0) remarks.push_back(absl::StrCat(summary.negative_infinities, " -Inf"));
  return absl::StrJoin(remarks, ", ");
}

std::vector<std::string> MetricNames(absl::Span<const RunNumbers> runs) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const RunNumbers& run : runs) {
    for (const MetricNumbers& numbers : run.metrics) {
      const std::string& name = numbers.metric.name;
      if (MeanOfSpread(run, name).empty() && seen.insert(name).second) names.push_back(name);
    }
  }
  return names;
}

const MetricNumbers* FirstNumbers(absl::Span<const RunNumbers> runs, const std::string& name) {
  const MetricNumbers* first = nullptr;
  for (const RunNumbers& run : runs) {
    const MetricNumbers* numbers = run.Find(name);
    if (numbers == nullptr) continue;
    if (numbers->summary.last_place >= 0) return numbers;
    if (first == nullptr) first = numbers;
  }
  return first;
}

std::string MeanOfSpread(const RunNumbers& run, const std::string& name) {
  for (const char* suffix : {"_mean", "_min", "_max", "_std"}) {
    absl::string_view mean = name;
    if (!absl::ConsumeSuffix(&mean, suffix) || run.Find(std::string(mean)) == nullptr) continue;
    // Other programs' grad_norm_max is a metric of its own.
    const MetricNumbers* spread = run.Find(name);
    if (spread != nullptr && absl::EndsWith(spread->metric.statistic, "over ranks")) return std::string(mean);
  }
  return "";
}

std::vector<std::string> MainMetrics(absl::Span<const RunNumbers> runs) {
  std::vector<std::string> chosen;
  for (const char* name : {"loss", "dt", "dtf", "dtb", "sps", "sps_world", "accuracy"}) {
    for (const char* prefix : {"", "train_", "train/"}) {
      const std::string full = absl::StrCat(prefix, name);
      if (HasValues(runs, full)) chosen.push_back(full);
    }
  }
  if (!chosen.empty()) return chosen;
  for (const std::string& name : MetricNames(runs)) {
    if (chosen.size() < 3 && HasValues(runs, name)) chosen.push_back(name);
  }
  return chosen;
}

}  // namespace plait::report
