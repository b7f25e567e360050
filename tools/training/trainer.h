// The training loop: the only one.
//
//   class CnnTask final : public TrainingTask { ... };       // model, data, evaluation, what it prints
//
//   Trainer trainer(run, task);
//   PLAIT_RETURN_IF_ERROR(trainer.Prepare());    // plans memory, shards the model, restores a checkpoint
//   PLAIT_RETURN_IF_ERROR(trainer.Train());      // steps, evaluations, checkpoints
//
// A step: micro-batches forward and backward (parallel/pipeline), the true count of targets summed over the ranks,
// clipping and the optimizer, the task's report, then a checkpoint where one is due. A loss is a sum;
// gradients are those of sum / nominal count, which is known beforehand, and the optimizer's divisor corrects
// it by the true count. A step with a loss or gradients that are not finite changes nothing: with loss
// scaling it is skipped, else the run ends.
//
// All is collective; between two collectives all ranks decide alike: losses and norms are the same bits on
// all ranks, and what only one rank knows (signals, full disks) is agreed upon. Errors are the same on all
// ranks.
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
  // Of this rank, as are the next three. A step waits for its device when it reads loss and norm of the
  // gradients; on CUDA parts of a step are the time in which their work is handed over.
  double dt_seconds = 0;
  double forward_seconds = 0;
  double backward_seconds = 0;   // with reductions and optimizer
  double optimizer_seconds = 0;  // of these
  double slowest_seconds = 0;    // dt of the slowest rank
  double learning_rate = 0;
  double gradient_norm = 0;
  double end_seconds = 0;  // on the steady clock; behind it ranks tell each other their times
};

// For the progress bar: of the whole run, in steps, samples or what else takes equal times.
struct TaskProgress {
  std::string label;  // "epoch 2 of 10"
  std::int64_t done = 0, total = 0;
};

class Trainer;

class TrainingTask {
 public:
  virtual ~TrainingTask() = default;

  virtual TrainedModel model() = 0;
  // For the memory plan and --dry-run. Empty: the plan is of model()'s numbers, and there is no dry run.
  virtual MakeDryRunModel dry_run_model() { return {}; }
  // What a resumed run must find again in its data or model besides settings.
  virtual NamedValues facts() const { return {}; }

  // Steps of the run before this task's first one: those of coarser networks, for instance. Steps are counted on, so that
  // checkpoints of a run have one order.
  virtual std::int64_t first_step() const { return 0; }
  // Whether the last step was taken.
  virtual bool done() const = 0;
  virtual TaskProgress progress() const = 0;
  // "after step 5", "at epoch 2, sample 80, step 5".
  virtual std::string Position() const = 0;
  virtual double LearningRate() const = 0;
  // This rank's part of micro-batch k of the next step, of Settings::MicroBatches. The same samples for any number of
  // ranks, in order; with Settings::leaves() leaf rank * MicroBatches + k of the step's samples.
  virtual MicroBatch Next(int k) = 0;

  // Before the first step of a run that does not resume.
  virtual absl::Status BeforeFirstStep() { return absl::OkStatus(); }
  // Whether the step just taken is followed by an evaluation.
  virtual bool EvaluationIsDue() const = 0;
  // Behind each step, outside its time: report, history, and the evaluation where it is due.
  virtual absl::Status EndStep(const StepReport& report, bool evaluates) = 0;

  // With --eval-only: the evaluation of the present parameters, with the same numbers and lines as behind a step, but no
  // draw of the history.
  virtual absl::Status EvaluateOnly() {
    return absl::UnimplementedError("--eval-only: this program has no evaluation");
  }

  // What a checkpoint keeps of data and task.
  virtual void Save(parallel::CheckpointState& state) const = 0;
  virtual absl::Status Restore(const parallel::Checkpoint& checkpoint) = 0;

  // The history: its metrics beside `step`, steps per all-gather, and plots of the file.
  virtual std::vector<Recorded> metrics() const = 0;
  virtual int gather_every() const { return 10; }
  virtual HistoryPlots plots() const { return {}; }
  // Whether there are files without --outputs and --history too.
  virtual bool always_writes_outputs() const { return true; }

 protected:
  friend class Trainer;
  Trainer* trainer_ = nullptr;  // the one that was made with this task
};

class Trainer {
 public:
  // Both outlive the trainer.
  Trainer(Run& run, TrainingTask& task);

  // Compares facts, prints and checks the memory plan, makes the model, restores the checkpoint, opens files. With
  // --dry-run it prints what that finds, and the trainer is of no further use.
  absl::Status Prepare();
  // With --eval-only the evaluation alone, and no files.
  absl::Status Train();
  // Closes the files and draws the plots.
  absl::Status Conclude();

  ShardedModel& model() { return *model_; }
  bool stopped() const { return run_.stopped != 0; }
  // A draw of the history: steps done, metrics of the task, and what was sent since the last draw (axis_traffic.h). Nothing where
  // the program writes no files.
  absl::Status Record(absl::Span<const data::Scalar> scalars);

  // Runs `one` for batches 0 to `count` - 1 without autograd and dropout, and sums what it adds to `sums`
  // over batches, data-parallel ranks and pipeline stages (the last stage has the losses). With a progress bar of
  // its own.
  using EvaluateOne = std::function<void(std::int64_t batch, DeviceSums& sums)>;
  std::vector<double> Evaluate(const std::string& label, std::int64_t count, std::size_t sums,
                               const EvaluateOne& one);

 private:
  struct Passes;
  NamedValues Facts() const;  // of the task and of the batch
  absl::Status ReportPipeline();
  absl::Status PlanMemory();
  absl::Status DryRunOnly();
  absl::Status Restore();
  std::vector<Recorded> Metrics() const;
  absl::Status OpenOutputs();
  void LogSolverLine();
  absl::Status Steps();
  absl::Status EvaluateOnly();
  Passes RunPasses();
  parallel::PipelineMicroBatch NextMicroBatch(int k, Passes& passes);
  absl::StatusOr<StepReport> Step();
  absl::Status NotFinite(const char* what, double value) const;
  void ReportProgress();
  void CountIdleTime();
  absl::Status SaveOrStop(bool evaluated);
  absl::Status Save();
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
  double save_begin_seconds_ = 0;
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_TRAINER_H_
