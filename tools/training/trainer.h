// The training loop of all training programs.
//
//   class CnnTask final : public TrainingTask { ... };       // model, data, evaluation, what it prints
//
//   Trainer trainer(run, task);
//   PLAIT_RETURN_IF_ERROR(trainer.Prepare());    // plans memory, shards the model, restores a checkpoint
//   PLAIT_RETURN_IF_ERROR(trainer.Train());      // steps, evaluations, checkpoints
//
// A step: forward and backward of the micro-batches (parallel/pipeline), an all-reduce of the number of valid targets,
// clipping and the optimizer, the task's report, then a checkpoint if one is due. A micro-batch's loss is a sum over
// targets. Gradients are computed of sum / nominal count, which is known beforehand; the optimizer then divides by
// valid / nominal count. A loss that is not finite ends the run before the optimizer changes anything; so do gradients
// that are not finite, unless loss scaling (float16) is on, which skips the step.
//
// Everything is collective and errors are the same on all ranks: losses and norms are bitwise identical on all ranks,
// and facts that only one rank knows (signals, full disks) are agreed on.
#ifndef PLAIT_TOOLS_TRAINING_TRAINER_H_
#define PLAIT_TOOLS_TRAINING_TRAINER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/block_model.h"
#include "parallel/checkpoint/async_saver.h"
#include "parallel/checkpoint/save_policy.h"
#include "parallel/optim/loss_scaler.h"
#include "tools/training/axis_traffic.h"
#include "tools/training/device_sums.h"
#include "tools/training/dry_run.h"
#include "tools/training/expert_load.h"
#include "tools/training/program.h"
#include "tools/training/run_outputs.h"
#include "tools/training/sharded_model.h"
#include "tools/training/solver_control.h"

namespace plait::training {

struct MicroBatch {
  models::Batch batch;             // this rank's part
  std::int64_t nominal_count = 0;  // targets of the whole step: all micro-batches and data-parallel ranks
};

struct StepReport {
  std::int64_t step = 0;   // steps done, from 1
  double loss = 0;         // mean over the targets of the whole step
  std::int64_t count = 0;  // of targets
  // The next four are times of this rank. A step synchronizes with its device twice, to read the loss and the gradient
  // norm; on CUDA the times of its parts are those of enqueuing their kernels.
  double dt_seconds = 0;
  double forward_seconds = 0;
  double backward_seconds = 0;   // includes reductions and the optimizer
  double optimizer_seconds = 0;  // part of backward_seconds
  double slowest_seconds = 0;    // dt_seconds of the slowest rank
  double learning_rate = 0;
  double gradient_norm = 0;
  double end_seconds = 0;  // on the steady clock, before the all-reduce of slowest_seconds
};

// For the progress bar of the whole run. Units are up to the task: steps, samples, anything of equal cost.
struct TaskProgress {
  std::string label;  // "epoch 2 of 10"
  std::int64_t done = 0, total = 0;
};

class Trainer;

class TrainingTask {
 public:
  virtual ~TrainingTask() = default;

  virtual TrainedModel model() = 0;
  // For the memory plan and --dry-run. Empty: the plan uses the activation_bytes_per_sample of model(), and --dry-run
  // is UNIMPLEMENTED.
  virtual MakeDryRunModel dry_run_model() { return {}; }
  // Properties of the data or the model, besides settings, that must be the same when a run resumes.
  virtual NamedValues facts() const { return {}; }
  // What else must be the same on all ranks, but may change when a run resumes, such as the test data.
  virtual NamedValues shared_facts() const { return {}; }
  // What the run trains on, in a line of the history's attributes; says "synthetic" where it is made up.
  virtual std::string data() const { return ""; }

  // Number of steps that the run has taken before this task, such as those of coarser networks in nested iteration.
  // Step numbers continue from there, so that checkpoints of a run are ordered.
  virtual std::int64_t first_step() const { return 0; }
  // Whether the last step was taken.
  virtual bool done() const = 0;
  virtual TaskProgress progress() const = 0;
  // "after step 5", "at epoch 2, sample 80, step 5".
  virtual std::string Position() const = 0;
  virtual double LearningRate() const = 0;
  // This rank's part of micro-batch k of the next step, k < Settings::MicroBatches. The parts of all ranks in order
  // must be the same samples for any number of ranks. With --reproducible: leaf number rank * MicroBatches + k of the
  // step's samples.
  virtual MicroBatch Next(int k) = 0;
  // Collective, after the passes of each step: the first error of reading samples in Next() on any rank.
  virtual absl::Status CheckData() { return absl::OkStatus(); }

  // Called before the first step of a run that does not resume.
  virtual absl::Status BeforeFirstStep() { return absl::OkStatus(); }
  // Whether the step just taken is followed by an evaluation.
  virtual bool EvaluationIsDue() const = 0;
  // Called after each step, outside its time: prints the report, records the history, and evaluates if `evaluates`.
  virtual absl::Status EndStep(const StepReport& report, bool evaluates) = 0;

  // --eval-only: evaluates the current parameters and prints the same lines as after a step, but records no draw of the
  // history. UNIMPLEMENTED by default.
  virtual absl::Status EvaluateOnly() {
    return absl::UnimplementedError("--eval-only: this program has no evaluation");
  }

  // State of data and task in a checkpoint.
  virtual void Save(parallel::CheckpointState& state) const = 0;
  virtual absl::Status Restore(const parallel::Checkpoint& checkpoint) = 0;

  // Metrics of the history besides `step`, steps per all-gather of them, and plots of the history.
  virtual std::vector<Recorded> metrics() const = 0;
  virtual int gather_every() const { return 10; }
  virtual HistoryPlots plots() const { return {}; }
  // Whether the run writes files even without --outputs and --history.
  virtual bool always_writes_outputs() const { return true; }

 protected:
  friend class Trainer;
  Trainer* trainer_ = nullptr;  // the one that was made with this task
};

class Trainer {
 public:
  // Both outlive the trainer.
  Trainer(Run& run, TrainingTask& task);

  // Compares facts with those of the checkpoint, prints and checks the memory plan, shards the model, restores the
  // checkpoint and opens the files. RESOURCE_EXHAUSTED if the plan exceeds the memory. With --dry-run it only prints
  // the dry run; Train must not be called then.
  absl::Status Prepare();
  // Runs the remaining steps. With --eval-only it evaluates once and writes no files.
  absl::Status Train();
  // Closes the files and draws the plots.
  absl::Status Conclude();

  ShardedModel& model() { return *model_; }
  bool stopped() const { return run_.stopped != 0; }
  // Of the last step's passes, without those that only measured the solver's bias.
  const std::vector<parallel::ActionTime>& timeline() const { return timeline_; }
  // Adds a draw to the history: the number of steps done (unless `scalars` has "step"), `scalars`, traffic since the last draw (axis_traffic.h),
  // expert load and solver columns. Does nothing if the program writes no files.
  absl::Status Record(absl::Span<const data::Scalar> scalars);

  // Calls `one` for batches 0 to `count` - 1 without autograd and dropout. Returns the `sums` values that it
  // accumulates, summed over batches, data-parallel and cp ranks and pipeline stages (only the last stage has losses).
  // Shows a progress bar. Looks after a save in the background, which is collective over all ranks: `by_all_ranks` is
  // false where only some of them evaluate.
  using EvaluateOne = std::function<void(std::int64_t batch, DeviceSums& sums)>;
  std::vector<double> Evaluate(const std::string& label, std::int64_t count, std::size_t sums,
                               const EvaluateOne& one, bool by_all_ranks = true);

  // Collective, for the end of EndStep(). Returns `error`, the same on all ranks, of an evaluation that has not changed
  // the run, such as a file that cannot be read; with --checkpoint-dir the step is saved first, unless the error is that
  // of CheckEvaluated.
  absl::Status SaveBefore(const absl::Status& error);
  // OUT_OF_RANGE, with the first tensor of the model that is NaN or infinite, if `value` of an evaluation, the same on
  // all ranks, is. Collective.
  absl::Status CheckEvaluated(const char* what, double value) const;

 private:
  struct Passes;
  NamedValues Facts() const;  // of the task and of the batch
  absl::Status ReportPipeline();
  absl::Status PlanMemory();
  absl::Status DryRunOnly();
  absl::Status Restore();
  absl::Status RestoreSinceDraw(parallel::Checkpoint& checkpoint);
  std::vector<Recorded> Metrics() const;
  absl::Status OpenOutputs();
  void LogSolverLine();
  absl::Status Steps();
  absl::Status EvaluateOnly();
  Passes RunPasses();
  parallel::PipelineMicroBatch NextMicroBatch(int k, Passes& passes);
  absl::StatusOr<StepReport> Step();
  absl::Status NotFinite(const char* what, double value, std::int64_t step) const;
  void ReportProgress();
  void CountIdleTime();
  absl::Status SaveOrStop(bool evaluated);
  absl::Status Save();
  absl::Status PollSave();  // collective
  absl::Status LogSaved(const absl::StatusOr<std::optional<parallel::SaveReport>>& saved);

  Run& run_;
  TrainingTask& task_;
  const Settings& settings_;
  TrainedModel trained_;
  std::unique_ptr<ShardedModel> model_;
  std::optional<RunOutputs> outputs_;
  AxisTraffic traffic_;
  ExpertLoad expert_load_;
  SolverControl solver_control_;
  parallel::LossScaler scaler_;
  std::optional<parallel::SavePolicy> policy_;  // with --checkpoint-dir
  std::optional<parallel::AsyncSaver> saver_;
  std::int64_t step_;                           // steps done
  std::int64_t history_draws_ = -1;             // of the checkpoint; -1: the run begins
  std::vector<parallel::ActionTime> timeline_;  // of the last step
  std::int64_t idle_ns_ = 0, passes_ns_ = 0;    // of all steps
  double pieces_seconds_ = 0;                   // of the last save, before the saver has begun
  absl::Status saved_;                          // of a save that ended during an evaluation
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_TRAINER_H_
