#include "tools/gru_training/run_history.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/revision/revision.h"

namespace plait::gru_training {
namespace {

absl::Status DeclareAll(data::History& history) {
  const std::vector<data::Metric> metrics = {
      {"epoch", "1", "epoch, from 1"},
      {"batch", "1", "batch within the epoch, from 1"},
      {"loss", "1", "cross entropy of the batch"},
      {"gradient_norm", "1", "2-norm of the gradient of all parameters"},
      {"time_per_batch", "s", "forward, loss and backward"},
      {"forward_time", "s", "forward evaluation of the batch"},
      {"loss_time", "s", "loss of the batch"},
      {"backward_time", "s", "backward evaluation of the batch"},
      {"forward_iterations", "1", "iterations of the forward solve"},
      {"forward_residual", "1", "residual of the state that entered the last forward iteration"},
      {"backward_iterations", "1", "iterations of the backward solve"},
      {"backward_residual", "1", "residual of the state that entered the last backward iteration"},
      {"parallel_accuracy", "1", "share of test samples that the trained network classifies correctly"},
      {"serial_accuracy", "1", "the same, through the serial network"},
      {"parallel_test_time", "s", "test of the trained network"},
      {"serial_test_time", "s", "test through the serial network"},
      {"epoch_time", "s", "training in the epoch"}};
  for (const data::Metric& metric : metrics) PLAIT_RETURN_IF_ERROR(history.Declare(metric));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RunHistory> RunHistory::Open(const Config& config, const std::string& settings, int ranks,
                                            std::int64_t resumed_draws) {
  RunHistory history;
  if (config.history.empty()) return history;
  const data::HistoryOptions options = {.attributes = {{"program", "train_gru"},
                                                       {"revision", Revision()},
                                                       {"settings", settings},
                                                       {"seed", absl::StrCat(config.seed)},
                                                       {"ranks", absl::StrCat(ranks)}}};
  std::error_code ignored;
  const bool resumes = resumed_draws >= 0 && std::filesystem::exists(config.history, ignored);
  PLAIT_ASSIGN_OR_RETURN(history.history_, resumes
                                               ? data::History::Resume(config.history, resumed_draws, options)
                                               : data::History::Create(config.history, options));
  if (!resumes) PLAIT_RETURN_IF_ERROR(DeclareAll(*history.history_));
  return history;
}

void RunHistory::Append(const std::vector<data::Scalar>& scalars) {
  if (history_ != nullptr && status_.ok()) status_ = history_->Append(scalars);
}

void RunHistory::Close() {
  if (history_ != nullptr && status_.ok()) status_ = history_->Close();
}

}  // namespace plait::gru_training
