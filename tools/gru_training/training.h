// One training run from the first batch to the last table.
//
//   Training training(config, settings, session, set, console);
//   PLAIT_RETURN_IF_ERROR(training.Run());
//   if (training.outcome().stopped) ...            // SIGTERM: a checkpoint was kept
//
// Collective. Between two collectives all ranks decide alike: losses and gradients are the same bits
// everywhere, and what only one rank can know (signals, full disks) is agreed upon. Errors are the same on
// every rank.
#ifndef PLAIT_TOOLS_GRU_TRAINING_TRAINING_H_
#define PLAIT_TOOLS_GRU_TRAINING_TRAINING_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/timer.h"
#include "comm/session.h"
#include "data/sampler.h"
#include "data/sequence_set.h"
#include "tools/gru_training/checkpoint.h"
#include "tools/gru_training/console.h"
#include "tools/gru_training/network.h"
#include "tools/gru_training/optimizer.h"
#include "tools/gru_training/report.h"
#include "tools/gru_training/run_history.h"

namespace plait::gru_training {

struct Outcome {
  bool stopped = false;  // before the end, on SIGTERM
  double parallel_accuracy = 0;
  double serial_accuracy = 0;
  std::vector<double> epoch_seconds;
  std::vector<double> test_seconds;  // of the network that is trained
};

class Training {
 public:
  // All arguments outlive the training. `settings`: the command line, for the history.
  Training(const Config& config, const std::string& settings, comm::Session& session,
           const data::SequenceSet& set, Console& console);

  absl::Status Run();
  const Outcome& outcome() const { return outcome_; }

 private:
  absl::Status Begin();
  absl::Status Resume();
  absl::Status TrainEpoch();
  absl::Status TrainBatch(absl::Span<const std::int64_t> indices);
  absl::Status CheckFinite(const char* what, double value);
  absl::Status EndOfBatch();
  void RecordBatch(const BatchTimes& times);
  absl::Status TestEpoch(double epoch_seconds);
  TestResult TestBy(const std::function<at::Tensor(const at::Tensor&)>& scores);
  TestResult Test();
  TestResult TestSerially();
  absl::Status KeepCheckpoint();
  void PrintProgress(bool end_of_epoch);
  void PrintResiduals();
  void PrintTables();

  const Config& config_;
  std::string settings_;
  comm::Session& session_;
  comm::Communicator lp_;
  const data::SequenceSet& set_;
  Console& console_;
  base::TimerSet timers_;
  Network network_;
  Optimizer optimizer_;
  data::Sampler sampler_;
  RunSettings run_settings_;
  RunHistory history_;
  TrainProgress progress_;  // of the present epoch
  double gradient_norm_ = 0;
  std::int64_t draws_ = 0;
  Outcome outcome_;
};

}  // namespace plait::gru_training

#endif  // PLAIT_TOOLS_GRU_TRAINING_TRAINING_H_
