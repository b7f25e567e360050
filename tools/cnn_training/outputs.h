// The files of a run besides its checkpoints: history and plots, with a draw for each epoch.
//
//   PLAIT_ASSIGN_OR_RETURN(Outputs outputs, Outputs::Open(config, facts, world, /*resumed_draws=*/-1));
//   for (...) PLAIT_RETURN_IF_ERROR(outputs.Record(report));
//   PLAIT_RETURN_IF_ERROR(outputs.Close());
//   outputs.Draw(log);
#ifndef PLAIT_TOOLS_CNN_TRAINING_OUTPUTS_H_
#define PLAIT_TOOLS_CNN_TRAINING_OUTPUTS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/log.h"
#include "comm/communicator.h"
#include "data/history/run_attributes.h"
#include "tools/cnn_training/config.h"
#include "tools/training_program/run_outputs.h"

namespace plait::cnn_training {

struct EpochReport {
  int epoch = 1;             // from 1
  double dt = 0;             // seconds of its training, on this rank, interruptions excluded
  double train_loss = 0;     // mean over its samples, each at its step
  double test_loss = 0;      // mean over all test samples
  double test_accuracy = 0;  // per cent of all test samples
  double lr = 0;
};

// "epoch=1 dt=13.378889 train_loss=0.642072 test_loss=0.153527 test_acc=95.260000"
std::string EpochLine(const EpochReport& report);

class Outputs {
 public:
  // Collective. Makes the folder (outputs/train_cnn/DATE-TIME without --outputs). A history that is there is
  // gone on with after `resumed_draws` draws; -1: of a run that begins. Errors are the same on all ranks: a
  // folder that takes no files, a history that is there already.
  static absl::StatusOr<Outputs> Open(const Config& config, data::RunFacts facts,
                                      const comm::Communicator& world, std::int64_t resumed_draws);

  // Collective.
  absl::Status Record(const EpochReport& report);
  std::int64_t draws() const { return run_.history().draws(); }

  // Collective. The history is complete then.
  absl::Status Close() { return run_.Close(); }

  // Rank 0. Every metric in the terminal and as text, SVG and PNG; without gnuplot it says so and goes on.
  void Draw(const base::Log& log) const;

  const std::string& history_path() const { return run_.history_path(); }

 private:
  explicit Outputs(training_program::RunOutputs run) : run_(std::move(run)) {}

  training_program::RunOutputs run_;
};

}  // namespace plait::cnn_training

#endif  // PLAIT_TOOLS_CNN_TRAINING_OUTPUTS_H_
