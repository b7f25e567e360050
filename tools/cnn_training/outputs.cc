#include "tools/cnn_training/outputs.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "data/history/history_table.h"

namespace plait::cnn_training {
namespace {

using rank_history::RankStatistics;

constexpr const char* kPlotted[] = {"dt", "train_loss", "test_loss", "test_acc"};

std::vector<training_program::Recorded> Metrics() {
  return {
      {{"epoch", "1", "epoch, from 1"}, RankStatistics::kRankZero},
      {{"dt", "s", "training in the epoch, by rank"}, RankStatistics::kStatistics},
      {{"train_loss", "1", "mean over the epoch's samples, each at its step"}, RankStatistics::kRankZero},
      {{"test_loss", "1", "mean over all test samples"}, RankStatistics::kRankZero},
      {{"test_acc", "%", "share of test samples that are classified correctly"}, RankStatistics::kRankZero},
      {{"lr", "1", "learning rate in the epoch"}, RankStatistics::kRankZero}};
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

}  // namespace

std::string EpochLine(const EpochReport& report) {
  return absl::StrFormat("epoch=%d dt=%f train_loss=%f test_loss=%f test_acc=%f", report.epoch, report.dt,
                         report.train_loss, report.test_loss, report.test_accuracy);
}

absl::StatusOr<Outputs> Outputs::Open(const Config& config, data::RunFacts facts,
                                      const comm::Communicator& world, std::int64_t resumed_draws) {
  PLAIT_ASSIGN_OR_RETURN(training_program::RunOutputs run,
                         training_program::RunOutputs::Open({.program = "train_cnn",
                                                             .outputs = config.outputs,
                                                             .history = config.history,
                                                             .metrics = Metrics(),
                                                             .gather_every = 1,
                                                             .resumed_draws = resumed_draws},
                                                            std::move(facts), world));
  return Outputs(std::move(run));
}

absl::Status Outputs::Record(const EpochReport& report) {
  return run_.history().Append({{"epoch", static_cast<double>(report.epoch)},
                                {"dt", report.dt},
                                {"train_loss", report.train_loss},
                                {"test_loss", report.test_loss},
                                {"test_acc", report.test_accuracy},
                                {"lr", report.lr}});
}

void Outputs::Draw(const base::Log& log) const { run_.Draw(PlotsOf(history_path(), run_.stamp()), log); }

}  // namespace plait::cnn_training
