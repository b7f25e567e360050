#include "tools/gpt_training/outputs.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "comm/stats.h"
#include "data/history/history_table.h"

namespace plait::gpt_training {
namespace {

using rank_history::RankStatistics;

std::vector<training_program::Recorded> Metrics() {
  return {
      {{"step", "1", "steps done"}, RankStatistics::kRankZero},
      {{"loss", "1", "cross entropy of the whole batch"}, RankStatistics::kRankZero},
      {{"dt", "s", "time per step"}, RankStatistics::kEachRank},
      {{"dtf", "s", "forward passes and losses"}, RankStatistics::kEachRank},
      {{"dtb", "s", "backward passes, reductions and optimizer"}, RankStatistics::kEachRank},
      {{"dto", "s", "optimizer and what it waits for"}, RankStatistics::kStatistics},
      {{"sps", "1/s", "samples per second of all ranks"}, RankStatistics::kRankZero},
      {{"tps", "1/s", "tokens per second of all ranks"}, RankStatistics::kRankZero},
      {{"mfu", "percent", "share of the peak's operations"}, RankStatistics::kStatistics},
      {{"lr", "1", "learning rate"}, RankStatistics::kRankZero},
      {{"gradient_norm", "1", "2-norm of all gradients, before clipping"}, RankStatistics::kRankZero},
      {{"train_loss", "1", "estimate on training text, after the step"}, RankStatistics::kRankZero},
      {{"val_loss", "1", "estimate on validation text, after the step"}, RankStatistics::kRankZero},
      {{"dt_eval", "s", "estimates and sample after the step, not in dt"}, RankStatistics::kStatistics},
      {{"comm_bytes_dp_replicate", "bytes", "sent by a rank"}, RankStatistics::kStatistics},
      {{"comm_in_flight_dp_replicate", "s", "collectives in flight, added up"}, RankStatistics::kStatistics},
      {{"comm_exposed_dp_replicate", "s", "of that, a rank stood still"}, RankStatistics::kStatistics},
      {{"comm_bytes_dp_shard", "bytes", "sent by a rank"}, RankStatistics::kStatistics},
      {{"comm_in_flight_dp_shard", "s", "collectives in flight, added up"}, RankStatistics::kStatistics},
      {{"comm_exposed_dp_shard", "s", "of that, a rank stood still"}, RankStatistics::kStatistics}};
}

data::Plot PlotOf(const std::string& name, const std::string& stamp, std::string unit,
                  std::vector<data::Series> series) {
  return {.name = name,
          .title = absl::StrCat("train/", name, " [", stamp, "]"),
          .x_label = "step",
          .y_label = name,
          .unit = std::move(unit),
          .series = std::move(series)};
}

absl::StatusOr<std::vector<data::Plot>> PlotsOf(const std::string& history, const std::string& stamp) {
  PLAIT_ASSIGN_OR_RETURN(const data::HistoryTable table, data::HistoryTable::Open(history));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<double> steps, table.Column("step"));
  std::vector<data::Plot> plots;
  std::vector<data::Series> losses;
  for (const std::string name : {"dt", "dtf", "dtb", "sps", "tps", "loss", "train_loss", "val_loss"}) {
    PLAIT_ASSIGN_OR_RETURN(const std::vector<double> values, table.Column(name));
    data::Series series = {name};
    for (std::size_t k = 0; k < values.size(); ++k) {
      if (std::isnan(values[k])) continue;  // steps without an estimate
      series.x.push_back(steps[k]);
      series.y.push_back(values[k]);
    }
    if (series.x.empty()) continue;
    const bool is_loss = name.find("loss") != std::string::npos;
    if (!is_loss) plots.push_back(PlotOf(name, stamp, table.Find(name)->units, {series}));
    if (is_loss) losses.push_back(std::move(series));
  }
  if (!losses.empty()) plots.push_back(PlotOf("loss", stamp, "1", std::move(losses)));
  return plots;
}

}  // namespace

absl::StatusOr<Outputs> Outputs::Open(const Config& config, data::RunFacts facts,
                                      const comm::Communicator& world, std::int64_t resumed_draws) {
  PLAIT_ASSIGN_OR_RETURN(training_program::RunOutputs run,
                         training_program::RunOutputs::Open({.program = "train_gpt",
                                                             .outputs = config.outputs,
                                                             .history = config.history,
                                                             .trace = config.trace,
                                                             .metrics = Metrics(),
                                                             .resumed_draws = resumed_draws},
                                                            std::move(facts), world));
  return Outputs(world, std::move(run));
}

Outputs::Traffic Outputs::TrafficOn(const std::string& axis) const {
  Traffic all;
  const comm::Stats& stats = world_.stats();
  const auto found = stats.find(axis);
  if (found == stats.end()) return all;
  for (const comm::OperationStats& operation : found->second) {
    all.bytes += static_cast<double>(operation.wire_bytes);
    all.in_flight_seconds += operation.in_flight_seconds;
    all.exposed_seconds += operation.exposed_seconds;
  }
  return all;
}

void Outputs::BeginSteps() {
  for (AxisTraffic* axis : {&replicate_, &shard_}) axis->before = TrafficOn(axis->name);
}

void Outputs::EndStep(const StepReport& step) {
  Trace(step);
  for (AxisTraffic* axis : {&replicate_, &shard_}) {
    const Traffic now = TrafficOn(axis->name), &before = axis->before;
    axis->of_step = {now.bytes - before.bytes, now.in_flight_seconds - before.in_flight_seconds,
                     now.exposed_seconds - before.exposed_seconds};
  }
}

void Outputs::Trace(const StepReport& step) {
  data::Trace* trace = run_.trace().trace();
  if (trace == nullptr) return;
  const std::int64_t end = data::Trace::NowNs();
  const std::int64_t begin = end - static_cast<std::int64_t>(1e9 * step.dt_seconds);
  const std::int64_t optimizer = end - static_cast<std::int64_t>(1e9 * step.optimizer_seconds);
  trace->Add("passes", 0, begin, optimizer);
  trace->Add("optimizer", 0, optimizer, end);
  trace->Add("step", 0, begin, end, {.step = step.step});
}

absl::Status Outputs::Record(const StepReport& step, double evaluation_seconds) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (++steps_ % 4 == 0) run_.trace().TakeCalls();
  BeginSteps();
  return run_.history().Append({{"step", static_cast<double>(step.step)},
                                {"loss", step.loss},
                                {"dt", step.dt_seconds},
                                {"dtf", step.forward_seconds},
                                {"dtb", step.backward_seconds},
                                {"dto", step.optimizer_seconds},
                                {"sps", step.samples_per_second()},
                                {"tps", step.tokens_per_second()},
                                {"mfu", step.mfu_percent},
                                {"lr", step.learning_rate},
                                {"gradient_norm", step.gradient_norm},
                                {"train_loss", step.losses ? step.losses->train : kNone},
                                {"val_loss", step.losses ? step.losses->validation : kNone},
                                {"dt_eval", evaluation_seconds},
                                {"comm_bytes_dp_replicate", replicate_.of_step.bytes},
                                {"comm_in_flight_dp_replicate", replicate_.of_step.in_flight_seconds},
                                {"comm_exposed_dp_replicate", replicate_.of_step.exposed_seconds},
                                {"comm_bytes_dp_shard", shard_.of_step.bytes},
                                {"comm_in_flight_dp_shard", shard_.of_step.in_flight_seconds},
                                {"comm_exposed_dp_shard", shard_.of_step.exposed_seconds}});
}

void Outputs::Draw(const base::Log& log) const { run_.Draw(PlotsOf(history_path(), run_.stamp()), log); }

}  // namespace plait::gpt_training
