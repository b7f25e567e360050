#include "tools/gpt_training/outputs.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "comm/stats.h"
#include "data/history/history_table.h"
#include "data/plot/plot.h"

namespace plait::gpt_training {
namespace {

using rank_history::OverRanks;

struct Recorded {
  data::Metric metric;
  OverRanks over;
};

std::vector<Recorded> Metrics() {
  return {{{"step", "1", "steps done"}, OverRanks::kRankZero},
          {{"loss", "1", "cross entropy of the whole batch"}, OverRanks::kRankZero},
          {{"dt", "s", "time per step"}, OverRanks::kEachRank},
          {{"dtf", "s", "forward passes and losses"}, OverRanks::kEachRank},
          {{"dtb", "s", "backward passes, reductions and optimizer"}, OverRanks::kEachRank},
          {{"dto", "s", "optimizer and what it waits for"}, OverRanks::kStatistics},
          {{"sps", "1/s", "samples per second of all ranks"}, OverRanks::kRankZero},
          {{"tps", "1/s", "tokens per second of all ranks"}, OverRanks::kRankZero},
          {{"mfu", "percent", "share of the peak's operations"}, OverRanks::kStatistics},
          {{"lr", "1", "learning rate"}, OverRanks::kRankZero},
          {{"gradient_norm", "1", "2-norm of all gradients, before clipping"}, OverRanks::kRankZero},
          {{"train_loss", "1", "estimate on training text, after the step"}, OverRanks::kRankZero},
          {{"val_loss", "1", "estimate on validation text, after the step"}, OverRanks::kRankZero},
          {{"dt_eval", "s", "estimates and sample after the step, not in dt"}, OverRanks::kStatistics},
          {{"comm_bytes_dp_replicate", "bytes", "sent by a rank"}, OverRanks::kStatistics},
          {{"comm_bytes_dp_shard", "bytes", "sent by a rank"}, OverRanks::kStatistics}};
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

absl::Status DrawPlots(const std::string& history, const std::string& stamp, const std::string& folder,
                       const base::Log& log) {
  PLAIT_ASSIGN_OR_RETURN(const std::vector<data::Plot> plots, PlotsOf(history, stamp));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                         data::RenderTexts(plots, data::TextStyleOf(1)));
  for (const std::string& text : texts) std::fputs(absl::StrCat("\n", text).c_str(), stdout);
  std::fflush(stdout);
  PLAIT_RETURN_IF_ERROR(data::WritePictures(plots, folder));
  log.Info(absl::StrCat("plots of ", plots.size(), " metrics saved in ", folder, "/{tplots,svgs,pngs}"));
  return absl::OkStatus();
}

std::string RelativeTo(const std::string& path, const std::string& file) {
  return std::filesystem::path(path).lexically_relative(std::filesystem::path(file).parent_path()).string();
}

}  // namespace

absl::Status Outputs::OpenFolder(const Config& config) {
  std::int64_t now[1] = {absl::ToUnixSeconds(absl::Now())};
  world_.Broadcast(comm::BufferOf(absl::MakeSpan(now)), 0);
  stamp_ = absl::FormatTime("%Y-%m-%d-%H%M%S", absl::FromUnixSeconds(now[0]), absl::LocalTimeZone());
  folder_ =
      config.outputs.empty() ? base::FromUser(absl::StrCat("outputs/train_gpt/", stamp_)) : config.outputs;
  history_path_ = config.history.empty() ? folder_ + "/history.h5" : config.history;
  trace_path_ = config.trace ? folder_ + "/trace.json" : "";
  absl::Status writable;
  if (world_.rank() == 0) {
    writable = base::Prefixed(base::ProbeWritableFolder(folder_), "--outputs");
    if (writable.ok()) writable = base::Prefixed(base::ProbeWritableFile(history_path_), "--history");
  }
  return world_.Agree(writable);
}

absl::StatusOr<Outputs> Outputs::Open(const Config& config, data::RunFacts facts,
                                      const comm::Communicator& world, std::int64_t resumed_draws) {
  Outputs outputs(world);
  PLAIT_RETURN_IF_ERROR(outputs.OpenFolder(config));
  if (config.trace) facts.trace = RelativeTo(outputs.trace_path_, outputs.history_path_);
  outputs.attributes_ = data::RunAttributes(facts);
  std::error_code ignored;
  std::int64_t there[1] = {std::filesystem::exists(outputs.history_path_, ignored) ? 1 : 0};
  world.Broadcast(comm::BufferOf(absl::MakeSpan(there)), 0);
  const bool goes_on = resumed_draws >= 0 && there[0] == 1;
  PLAIT_ASSIGN_OR_RETURN(outputs.history_, rank_history::RankHistory::Create(
                                               world, {.path = outputs.history_path_,
                                                       .attributes = outputs.attributes_,
                                                       .resume_draws = goes_on ? resumed_draws : -1}));
  PLAIT_RETURN_IF_ERROR(outputs.Declare());
  outputs.trace_ = rank_history::RankTrace::Create(world, {.path = outputs.trace_path_});
  return outputs;
}

absl::Status Outputs::Declare() {
  for (const Recorded& one : Metrics()) PLAIT_RETURN_IF_ERROR(history_->Declare(one.metric, one.over));
  return absl::OkStatus();
}

double Outputs::SentBytes(const std::string& axis) const {
  double bytes = 0;
  const comm::Stats& stats = world_.stats();
  if (const auto found = stats.find(axis); found != stats.end()) {
    for (const comm::OperationStats& operation : found->second) {
      bytes += static_cast<double>(operation.wire_bytes);
    }
  }
  return bytes;
}

void Outputs::BeginSteps() {
  replicate_.before = SentBytes("dp_replicate");
  shard_.before = SentBytes("dp_shard");
}

void Outputs::EndStep(const StepReport& step) {
  Trace(step);
  replicate_.of_step = SentBytes("dp_replicate") - replicate_.before;
  shard_.of_step = SentBytes("dp_shard") - shard_.before;
}

void Outputs::Trace(const StepReport& step) {
  data::Trace* trace = trace_->trace();
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
  if (++steps_ % 4 == 0) trace_->TakeCalls();
  BeginSteps();
  return history_->Append({{"step", static_cast<double>(step.step)},
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
                           {"comm_bytes_dp_replicate", replicate_.of_step},
                           {"comm_bytes_dp_shard", shard_.of_step}});
}

absl::Status Outputs::Close() {
  trace_->TakeCalls();
  PLAIT_RETURN_IF_ERROR(history_->Close());
  return trace_->Write(attributes_);
}

void Outputs::Draw(const base::Log& log) const {
  const absl::Status drawn = DrawPlots(history_path_, stamp_, folder_, log);
  if (!drawn.ok()) log.Warning(absl::StrCat("no plots: ", drawn.message()));
}

}  // namespace plait::gpt_training
