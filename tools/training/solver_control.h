// The layer-parallel solver in a training loop: its columns of the history, and the control of its bias.
//
//   forward_iterations, backward_iterations   of the step's last solves
//   forward_residual, backward_residual       that the last iteration began with; NaN: none was taken
//   evaluations                               of blocks by this rank since the record before, of all levels, forward
//                                             and adjoint, all micro-batches and what measures the bias
//   fine_evaluations                          of them, those on the finest level
//   diverged_solves                           so far, which were done again serially
//   gradient_bias                             |gradient - exact gradient| / |exact gradient|, the last measured since the
//                                             record before; NaN: none was
//
// With --lp-bias-limit, every --lp-bias-every steps the gradients of the step's micro-batches are computed twice: by as
// many iterations as steps take now, and exactly (or, --lp-bias-reference=iteration, by one iteration more in both
// directions, from where the solves are: an estimate at the price of one cycle, and of the memory of all micro-batches'
// states). The step takes the latter; their distance raises or lowers the iterations (bias_policy.h). A solve that has
// diverged is no measurement but calls for more. With --lp-auto the first steps choose the solver (auto_solver.h); without
// it and without a limit, a few steps later one line says what it would look at. Where the model has no solver, nothing
// happens. Collective.
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
#include "tools/training/step_work.h"

namespace plait::training {

class SolverControl {
 public:
  // `ranks_on_host`: that share this host's cores.
  SolverControl(const LayerParallelSettings& settings, const comm::Communicator& world, int ranks_on_host)
      : settings_(settings), world_(world), ranks_on_host_(ranks_on_host) {}
  // Before the first step; `model` outlives this.
  void Begin(ShardedModel& model);

  // Forward and backward of step `step`, from 0. `next` is called once for each micro-batch.
  parallel::PipelineStep RunMicroBatches(std::int64_t step, const parallel::NextMicroBatch& next);
  // What the last step, or Restore, found: a bias and the next iterations, the choice of --lp-auto, or what that would look
  // at; mostly empty.
  const std::string& Line() const { return line_; }

  // Of a model with a solver.
  static std::vector<Recorded> metrics();
  // Appends those of the steps since the last call.
  void TakeStep(std::vector<data::Scalar>& scalars);
  void Save(parallel::CheckpointState& state) const;
  absl::Status Restore(const parallel::Checkpoint& checkpoint);

 private:
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
  std::optional<SolverChoice> restored_;
  std::optional<double> bias_;  // of the last step
  // Since the last TakeStep.
  std::optional<double> recorded_bias_;
  bool has_step_ = false;
  std::int64_t evaluations_ = 0, fine_evaluations_ = 0;
  std::string line_;
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_SOLVER_CONTROL_H_
