// One training run from its first step to its last.
//
//   PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<Training> training, Training::Begin(setting));
//   PLAIT_RETURN_IF_ERROR(training->Run());
//   if (training->stopped()) ...                       // SIGTERM, or the job's end: a checkpoint was kept
//
// Collective. Between two collectives all ranks decide alike: losses are summed over ranks, and what only one
// rank can know (signals, full disks) is agreed upon. Errors are the same on every rank.
#ifndef PLAIT_TOOLS_GPT_TRAINING_TRAINING_H_
#define PLAIT_TOOLS_GPT_TRAINING_TRAINING_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/log.h"
#include "comm/device_mesh.h"
#include "comm/session.h"
#include "parallel/checkpoint/async_saver.h"
#include "parallel/checkpoint/save_policy.h"
#include "parallel/optim/loss_scaler.h"
#include "parallel/optim/lr_schedule.h"
#include "tools/gpt_training/block_batches.h"
#include "tools/gpt_training/config.h"
#include "tools/gpt_training/corpus.h"
#include "tools/gpt_training/evaluation.h"
#include "tools/gpt_training/outputs.h"
#include "tools/gpt_training/run_state.h"
#include "tools/gpt_training/sharded_gpt.h"
#include "tools/gpt_training/step_line.h"
#include "tools/gru_training/console.h"

namespace plait::gpt_training {

// What a run is made of; all of it outlives the training.
struct RunParts {
  const Config& config;
  const std::string& settings;  // the command line, for checkpoints
  comm::Session& session;
  const comm::DeviceMesh& mesh;
  const Corpus& corpus;
  const base::Log& log;
  gru_training::Console& console;  // for the progress bar
  ShardedGpt& sharded;
  Outputs& outputs;
  const std::optional<RunState>& resumed;
  double peak_flops = 0;  // of a rank; 0: not known
};

class Training {
 public:
  // InvalidArgument where the text is too short for a block, or the checkpoint's was another one.
  static absl::StatusOr<std::unique_ptr<Training>> Begin(const RunParts& parts);

  absl::Status Run();
  bool stopped() const { return stopped_; }

 private:
  struct Passes {
    double loss = 0;  // this rank's part
    double forward_seconds = 0;
    double backward_seconds = 0;
  };
  Training(const RunParts& parts, BlockBatches batches, Evaluation evaluation);
  absl::Status Restore(const RunState& state);

  absl::Status Steps();
  absl::Status Step();
  Passes RunPasses();
  void RunPass(int micro_batch, Passes& passes);
  absl::StatusOr<StepReport> TimedStep(double* own_loss, bool* overflowed);
  void ShareReport(double own_loss, StepReport& report) const;
  absl::Status CheckFinite(const StepReport& report, bool overflowed) const;
  std::string FirstNonFinite() const;

  double EvaluateIfDue(StepReport& report);
  Losses Evaluate(std::int64_t step);
  absl::Status KeepOrStop();
  absl::Status KeepCheckpoint();
  absl::Status SaySaved(const absl::StatusOr<std::optional<parallel::SaveReport>>& saved);

  RunParts parts_;
  const Config& config_;
  comm::Communicator world_;
  BlockBatches batches_;
  Evaluation evaluation_;
  parallel::LrSchedule schedule_;
  parallel::LossScaler scaler_;
  std::optional<parallel::SavePolicy> policy_;  // without --checkpoint-dir none
  std::optional<parallel::AsyncSaver> saver_;
  SavedModel saved_model_;
  std::uint64_t seed_;
  std::int64_t step_ = 0;  // steps done
  double save_begin_seconds_ = 0;
  double flops_per_token_ = 0;
  bool stopped_ = false;
};

}  // namespace plait::gpt_training

#endif  // PLAIT_TOOLS_GPT_TRAINING_TRAINING_H_
