// The history file of a run (data/history/history.h), written by rank 0. A draw for every batch, and one for
// every epoch's tests:
//   epoch, batch               from 1; batch counts within the epoch; NaN in draws of tests
//   loss, gradient_norm, time_per_batch, forward_time, loss_time, backward_time
//   forward_iterations, forward_residual, backward_iterations, backward_residual
//   parallel_accuracy, serial_accuracy, parallel_test_time, serial_test_time, epoch_time
#ifndef PLAIT_TOOLS_GRU_TRAINING_RUN_HISTORY_H_
#define PLAIT_TOOLS_GRU_TRAINING_RUN_HISTORY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/history/history.h"
#include "tools/gru_training/config.h"

namespace plait::gru_training {

class RunHistory {
 public:
  // None: every call does nothing.
  RunHistory() = default;
  // Local; `resumed_draws` >= 0 goes on with the file after so many draws, if it is there.
  static absl::StatusOr<RunHistory> Open(const Config& config, const std::string& settings, int ranks,
                                         std::int64_t resumed_draws);

  // Keeps the first error for status().
  void Append(const std::vector<data::Scalar>& scalars);
  void Close();
  const absl::Status& status() const { return status_; }

 private:
  std::unique_ptr<data::History> history_;
  absl::Status status_;
};

}  // namespace plait::gru_training

#endif  // PLAIT_TOOLS_GRU_TRAINING_RUN_HISTORY_H_
