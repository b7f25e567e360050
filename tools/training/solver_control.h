// The layer-parallel solver in a training loop: its columns of the history, and the control of its bias.
//
//   forward_iterations, backward_iterations   of the step's last solves
//   forward_residual, backward_residual       residual norm before the last iteration; NaN: no iteration measured it
//   evaluations                               steps that this rank evaluated since the previous draw, on all levels,
//                                             forward and adjoint, over all micro-batches, bias measurements included
//   fine_evaluations                          those of them on the finest level
//   diverged_solves                           total so far, of all ranks; each was repeated serially
//   gradient_bias                             |gradient - exact gradient| / |exact gradient|, the last measured
//                                             since the previous draw; NaN: none
//
// With --lp-bias-limit, every --lp-bias-every steps the gradients of the step's micro-batches are computed twice: with
// the current number of iterations, and exactly. With --lp-bias-reference=iteration, the second gradient continues the
// solves by one iteration in each direction instead: an estimate at the cost of one cycle and the memory of the states
// of all micro-batches. The optimizer takes the second gradient, and the distance raises or lowers the number of
// iterations (bias_policy.h). A diverged solve raises it. With --lp-auto the first steps choose the solver
// (auto_solver.h); without either flag, one line a few steps later says what --lp-auto would try. Does
// nothing if the model has no solver. Collective.
#ifndef PLAIT_TOOLS_TRAINING_SOLVER_CONTROL_H_
#define PLAIT_TOOLS_TRAINING_SOLVER_CONTROL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "comm/communicator.h"
#include "data/history/metric.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/save.h"
#include "parallel/pipeline/executor.h"
#include "tools/training/auto_solver.h"
#include "tools/training/bias_policy.h"
#include "tools/training/layer_parallel_settings.h"
#include "tools/training/run_outputs.h"
#include "tools/training/sharded_model.h"
#include "tools/training/since_draw.h"
#include "tools/training/step_work.h"

namespace plait::training {

class SolverControl {
 public:
  // `ranks_on_host`: number of ranks that share this host's cores.
  SolverControl(const LayerParallelSettings& settings, const comm::Communicator& world, int ranks_on_host)
      : settings_(settings), world_(world), ranks_on_host_(ranks_on_host) {}
  // Call before the first step and before Restore; `model` must outlive this.
  void Begin(ShardedModel& model);

  // Forward and backward of step `step`, from 0. `next` is called once for each micro-batch.
  parallel::PipelineStep RunMicroBatches(std::int64_t step, const parallel::NextMicroBatch& next);
  // A line for the log from the last step or Restore: a measured bias and the next iterations, or the choice or advice
  // of --lp-auto. Empty after most steps.
  const std::string& Line() const { return line_; }

  // The columns above, for models with a solver.
  static std::vector<Recorded> metrics();
  // Appends the values of the steps since the last call. Local.
  void TakeStep(std::vector<data::Scalar>& scalars);
  // Sums of these steps, for a checkpoint, and back.
  void AddTo(SinceDraw& sums) const;
  void RestoreSums(const std::optional<SinceDraw>& sums);
  void Save(parallel::CheckpointState& state) const;
  absl::Status Restore(const parallel::Checkpoint& checkpoint);

 private:
  void CountDiverged(const mgrit::LayerParallel& solver);
  void Use(const SolverChoice& choice);
  void ControlBias(const mgrit::LayerParallelOptions& options);
  // With a solver.
  parallel::PipelineStep RunStep(std::int64_t step, const parallel::NextMicroBatch& next);
  void FollowChoice();
  parallel::PipelineStep Try(const parallel::NextMicroBatch& next);
  parallel::PipelineStep Measure(const parallel::NextMicroBatch& next);
  parallel::PipelineStep RunAndAdvise(const parallel::NextMicroBatch& next);

  LayerParallelSettings settings_;
  comm::Communicator world_;
  int ranks_on_host_;
  ShardedModel* model_ = nullptr;
  std::optional<AutoSolver> auto_;  // with --lp-auto
  // Of the first steps, without it.
  std::optional<StepWork> work_;
  std::vector<double> seconds_;  // of those that count
  std::optional<BiasPolicy> policy_;
  std::optional<BiasPolicyState> restored_;
  std::optional<double> bias_;  // of the last step
  // Since the last TakeStep.
  std::optional<double> recorded_bias_;
  bool has_step_ = false;
  // Of the step's last solves, which those of an evaluation may follow.
  struct LastSolve {
    int iterations = 0;
    double residual = 0;
  };
  LastSolve forward_, backward_;
  double evaluations_ = 0, fine_evaluations_ = 0;
  std::int64_t diverged_before_ = 0;  // solves before the checkpoint that the run resumes from
  std::int64_t diverged_ = 0;         // since
  std::string line_;
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_SOLVER_CONTROL_H_
