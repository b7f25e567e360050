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
#include "base/status_macros.h"
#include "data/history/history_table.h"
#include "tools/report_parts/comparison.h"
#include "tools/report_parts/steps_per_draw.h"
#include "tools/report_parts/summary.h"

namespace plait::report {
namespace {

// Draws per block, and the largest number of values evaluated (16 MiB).
constexpr std::int64_t kBlockDraws = 4096;
constexpr std::int64_t kMostValues = std::int64_t{1} << 21;

struct Tally {
  std::vector<std::vector<double>> values;  // by rank
  std::vector<std::int64_t> slowest;        // by rank, draws
  std::int64_t draws = 0;
};

void Add(absl::Span<const double> row, Tally& tally) {
  std::int64_t slowest = -1;
  for (std::size_t rank = 0; rank < row.size(); ++rank) {
    if (!std::isfinite(row[rank])) continue;
    tally.values[rank].push_back(row[rank]);
    if (slowest < 0 || row[rank] > row[slowest]) slowest = rank;
  }
  if (slowest < 0) return;
  ++tally.slowest[slowest];
  ++tally.draws;
}

void Judge(RankTimes& times) {
  std::vector<double> finite;
  for (std::size_t rank = 0; rank < times.medians.size(); ++rank) {
    if (std::isnan(times.medians[rank])) continue;
    finite.push_back(times.medians[rank]);
    if (times.slowest < 0 || times.medians[rank] > times.medians[times.slowest]) times.slowest = rank;
  }
  if (times.slowest >= 0) times.spread = times.medians[times.slowest] / Quantile(finite, 0.5);
}

absl::StatusOr<RankTimes> RankTimesOf(const data::HistoryTable& table, const data::TableMetric& metric,
                                      std::int64_t skip) {
  const std::int64_t draws = table.draws() - skip;
  const std::int64_t blocks = (draws + kBlockDraws - 1) / kBlockDraws;
  const std::int64_t most_blocks = std::max<std::int64_t>(1, kMostValues / (kBlockDraws * metric.width));
  const std::int64_t stride = (blocks + most_blocks - 1) / most_blocks;
  Tally tally = {std::vector<std::vector<double>>(metric.width), std::vector<std::int64_t>(metric.width)};
  for (std::int64_t block = 0; block < blocks; block += stride) {
    const std::int64_t first = skip + block * kBlockDraws;
    const std::int64_t count = std::min(kBlockDraws, table.draws() - first);
    PLAIT_ASSIGN_OR_RETURN(const std::vector<double> rows, table.Rows(metric.name, first, count));
    for (std::int64_t i = 0; i < count; ++i) {
      Add(absl::MakeConstSpan(rows).subspan(i * metric.width, metric.width), tally);
    }
  }
  RankTimes times = {.metric = metric.name, .units = metric.units, .draws = tally.draws, .of_draws = draws};
  for (std::int64_t rank = 0; rank < metric.width; ++rank) {
    times.medians.push_back(Quantile(tally.values[rank], 0.5));
    times.slowest_shares.push_back(tally.draws == 0 ? 0 : double(tally.slowest[rank]) / double(tally.draws));
  }
  Judge(times);
  return times;
}

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
    if (found == table.metrics().end()) {
      const std::string known =
          absl::StrJoin(table.metrics(), ", ",
                        [](std::string* out, const auto& metric) { absl::StrAppend(out, metric.name); });
      return absl::NotFoundError(absl::StrCat(table.path(), ": has no metric ", name, "; it has ", known));
    }
    chosen.push_back(&*found);
  }
  return chosen;
}

bool IsByRank(const TableMetric& metric) {
  return metric.dimension == "rank" || absl::StartsWith(metric.dimension, "rank_of_") ||
         absl::EndsWith(metric.name, "_per_rank");
}

// `steps` as of StepsPerDraw.
absl::Status AddMetric(const HistoryTable& table, const TableMetric& metric, const RunOptions& options,
                       const std::vector<double>& steps, RunNumbers& run) {
  if (metric.is_vector) {
    if (metric.width == 0) return absl::OkStatus();
    if (absl::StartsWith(metric.name, "expert_load_")) run.heat_maps.push_back(metric);
    if (!IsByRank(metric)) return absl::OkStatus();
    PLAIT_ASSIGN_OR_RETURN(RankTimes times, RankTimesOf(table, metric, options.skip));
    run.ranks.push_back(std::move(times));
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

const Summary* SummaryOf(const RunNumbers& run, absl::Span<const char* const> names) {
  const MetricNumbers* numbers = NumbersOf(run, names);
  return numbers == nullptr ? nullptr : &numbers->summary;
}

void AddRates(RunNumbers& run) {
  if (const MetricNumbers* time = NumbersOf(run, {"dt", "step_time"}); time != nullptr) {
    const Summary& dt = time->per_step;
    if (dt.median > 0) {
      run.rates.push_back({"steps", "steps per second", 1 / dt.median, 1 / dt.p90, 1 / dt.p10});
    }
  }
  // Programs differ in what they call sps or tps (one rank or all): the metric's long name tells.
  for (const char* name : {"sps", "sps_world", "tps", "tps_world", "tokens_per_second"}) {
    const MetricNumbers* rate = NumbersOf(run, {name});
    if (rate == nullptr || rate->summary.finite == 0) continue;
    const std::string& what = rate->metric.long_name;
    run.rates.push_back({name, what.empty() ? rate->metric.name : what, rate->summary.median,
                         rate->summary.p10, rate->summary.p90});
  }
  const Summary *tokens = SummaryOf(run, {"tokens"}), *dt = SummaryOf(run, {"dt", "step_time"});
  if (tokens == nullptr || dt == nullptr || !(dt->median > 0)) return;
  const double count = tokens->median;
  run.rates.push_back({"tokens", "tokens per second, of the median step", count / dt->median, count / dt->p90,
                       count / dt->p10});
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
  if (!table.is_history()) run.notes.push_back("Written by another program; units are what its file says.");
  for (const TableMetric& metric : table.metrics()) {
    if (metric.is_vector && !IsByRank(metric)) {
      run.notes.push_back(
          absl::StrCat(metric.name, " has ", metric.width, " values per draw",
                       metric.dimension.empty() ? "" : absl::StrCat(" along ", metric.dimension),
                       "; it is not summarized."));
    }
  }
}

void AddTimeline(RunNumbers& run) {
  const std::string trace = run.Attribute("trace");
  if (trace.empty()) return;
  const std::filesystem::path folder = std::filesystem::path(run.path).parent_path();
  absl::StatusOr<StepTimeline> timeline = MedianStep((folder / trace).string());
  if (timeline.ok()) {
    run.timeline = *std::move(timeline);
  } else {
    run.notes.push_back(absl::StrCat("No timeline: ", timeline.status().message(), "."));
  }
}

bool HasValues(absl::Span<const RunNumbers> runs, const std::string& name) {
  return std::any_of(runs.begin(), runs.end(), [&](const RunNumbers& run) {
    const MetricNumbers* numbers = run.Find(name);
    return numbers != nullptr && numbers->summary.last_place >= 0;
  });
}

}  // namespace

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
  AddRates(run);
  AddTraffic(run);
  AddNotes(table, run);
  if (options.timeline) AddTimeline(run);
  return run;
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

std::string MeanOfSpread(const RunNumbers& run, const std::string& name) {
  for (const char* suffix : {"_mean", "_min", "_max", "_std"}) {
    absl::string_view mean = name;
    if (absl::ConsumeSuffix(&mean, suffix) && run.Find(std::string(mean)) != nullptr)
      return std::string(mean);
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
