#include "tools/cnn_training/outputs.h"

#include <cstdio>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "data/history/history_table.h"
#include "data/plot/plot.h"

namespace plait::cnn_training {
namespace {

using rank_history::OverRanks;

constexpr const char* kPlotted[] = {"dt", "train_loss", "test_loss", "test_acc"};

struct Recorded {
  data::Metric metric;
  OverRanks over;
};

std::vector<Recorded> Metrics() {
  return {{{"epoch", "1", "epoch, from 1"}, OverRanks::kRankZero},
          {{"dt", "s", "training in the epoch, by rank"}, OverRanks::kStatistics},
          {{"train_loss", "1", "mean over the epoch's samples, each at its step"}, OverRanks::kRankZero},
          {{"test_loss", "1", "mean over all test samples"}, OverRanks::kRankZero},
          {{"test_acc", "%", "share of test samples that are classified correctly"}, OverRanks::kRankZero},
          {{"lr", "1", "learning rate in the epoch"}, OverRanks::kRankZero}};
}

absl::StatusOr<std::vector<data::Plot>> PlotsOf(const std::string& history, const std::string& stamp) {
  PLAIT_ASSIGN_OR_RETURN(const data::HistoryTable table, data::HistoryTable::Open(history));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<double> epochs, table.Column("epoch"));
  std::vector<data::Plot> plots;
  for (const std::string name : kPlotted) {
    PLAIT_ASSIGN_OR_RETURN(std::vector<double> values, table.Column(name));
    plots.push_back({.name = name,
                     .title = absl::StrCat(name, " [", stamp, "]"),
                     .x_label = "epoch",
                     .y_label = name,
                     .unit = table.Find(name)->units,
                     .series = {{name, epochs, std::move(values)}},
                     .robust = false});
  }
  return plots;
}

absl::Status DrawPlots(const std::string& history, const std::string& stamp, const std::string& folder,
                       const base::Log& log) {
  PLAIT_ASSIGN_OR_RETURN(const std::vector<data::Plot> plots, PlotsOf(history, stamp));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                         data::RenderTexts(plots, data::TextStyleOf(1)));
  for (const std::string& text : texts) std::fputs(absl::StrCat("\n", text).c_str(), stdout);
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::string> files, data::WritePictures(plots, folder));
  log.Info(absl::StrCat("plots of ", plots.size(), " metrics saved in ", folder, "/{tplots,svgs,pngs}"));
  return absl::OkStatus();
}

// What only rank 0 does.
absl::Status CheckPlaces(const std::string& folder, const std::string& history) {
  PLAIT_RETURN_IF_ERROR(base::Prefixed(base::ProbeWritableFolder(folder), "--outputs"));
  return base::Prefixed(base::ProbeWritableFile(history), "--history");
}

}  // namespace

std::string EpochLine(const EpochReport& report) {
  return absl::StrFormat("epoch=%d dt=%f train_loss=%f test_loss=%f test_acc=%f", report.epoch, report.dt,
                         report.train_loss, report.test_loss, report.test_accuracy);
}

absl::StatusOr<Outputs> Outputs::Open(const Config& config, const data::RunFacts& facts,
                                      const comm::Communicator& world, std::int64_t resumed_draws) {
  std::int64_t now[1] = {absl::ToUnixSeconds(absl::Now())};
  world.Broadcast(comm::BufferOf(absl::MakeSpan(now)), 0);
  Outputs outputs;
  outputs.stamp_ = absl::FormatTime("%Y-%m-%d-%H%M%S", absl::FromUnixSeconds(now[0]), absl::LocalTimeZone());
  outputs.folder_ = config.outputs.empty()
                        ? base::FromUser(absl::StrCat("outputs/train_cnn/", outputs.stamp_))
                        : config.outputs;
  outputs.history_path_ = config.history.empty() ? outputs.folder_ + "/history.h5" : config.history;
  absl::Status usable;
  std::int64_t resumed[1] = {-1};
  if (world.rank() == 0) {
    usable = CheckPlaces(outputs.folder_, outputs.history_path_);
    std::error_code ignored;
    if (resumed_draws >= 0 && std::filesystem::exists(outputs.history_path_, ignored))
      resumed[0] = resumed_draws;
  }
  PLAIT_RETURN_IF_ERROR(world.Agree(usable));
  world.Broadcast(comm::BufferOf(absl::MakeSpan(resumed)), 0);
  PLAIT_ASSIGN_OR_RETURN(outputs.history_,
                         rank_history::RankHistory::Create(world, {.path = outputs.history_path_,
                                                                   .attributes = data::RunAttributes(facts),
                                                                   .gather_every = 1,
                                                                   .resume_draws = resumed[0]}));
  for (const Recorded& one : Metrics()) {
    PLAIT_RETURN_IF_ERROR(outputs.history_->Declare(one.metric, one.over));
  }
  outputs.draws_ = std::max<std::int64_t>(0, resumed[0]);
  return outputs;
}

absl::Status Outputs::Record(const EpochReport& report) {
  ++draws_;
  return history_->Append({{"epoch", static_cast<double>(report.epoch)},
                           {"dt", report.dt},
                           {"train_loss", report.train_loss},
                           {"test_loss", report.test_loss},
                           {"test_acc", report.test_accuracy},
                           {"lr", report.lr}});
}

void Outputs::Draw(const base::Log& log) const {
  const absl::Status drawn = DrawPlots(history_path_, stamp_, folder_, log);
  if (!drawn.ok()) log.Warning(absl::StrCat("no plots: ", drawn.message()));
}

}  // namespace plait::cnn_training
