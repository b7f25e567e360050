// --lp-auto: the first steps of training compare solvers with serial propagation, and the fastest one with sufficiently
// accurate gradients is used from then on.
//
// A trial (solver_search.h) is a few steps. Each computes its gradients with the trial's solver and serially, measures
// times and distance, and takes the exact gradients: trials cost time, not accuracy. After the first trial, its
// measured work and the scaling model (mgrit/scaling) predict the times of other levels, factors, iterations and holds.
#ifndef PLAIT_TOOLS_TRAINING_AUTO_SOLVER_H_
#define PLAIT_TOOLS_TRAINING_AUTO_SOLVER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "comm/communicator.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/pipeline/executor.h"
#include "tools/training/sharded_model.h"
#include "tools/training/solver_search.h"
#include "tools/training/step_work.h"

namespace plait::training {

// Time of the forward and backward passes of a step, which has `micro_batches` of each.
struct StepSeconds {
  double seconds = 0;
  std::size_t micro_batches = 1;
};

class AutoSolver {
 public:
  // Limit of the gradient bias if --lp-bias-limit is 0.
  static constexpr double kBiasLimit = 0.1;

  // `model` must have a solver and outlive this; `own`: the solver's options. `ranks_on_host`: number of ranks that
  // share this host's cores.
  AutoSolver(ShardedModel& model, const comm::Communicator& world, const mgrit::LayerParallelOptions& own,
             double bias_limit, int ranks_on_host);

  bool done() const { return restored_ || search_.next() == nullptr; }
  // Collective. Forward and backward of a step; after the last trial the solver is configured as chosen. Must not be
  // called once done.
  parallel::PipelineStep RunMicroBatches(const parallel::NextMicroBatch& next);
  // Relative distance of the last step's two gradients; NaN: a solve diverged, or the exact gradients overflowed.
  double bias() const { return bias_; }
  // The chosen solver, once done; null: serial propagation.
  const SolverCandidate* choice() const { return choice_.has_value() ? &*choice_ : nullptr; }
  // One line for the log: the choice and why. Requires done().
  std::string Line() const;

  // Adds the choice to a checkpoint; nothing unless done, so that a resumed run repeats the trials.
  void Save(std::map<std::string, std::int64_t>& integers) const;
  // Adopts the checkpoint's choice if it was made with the same number of ranks along lp; done() is true then.
  // DATA_LOSS for values out of range.
  absl::Status Restore(const parallel::Checkpoint& checkpoint);

 private:
  int ranks() const { return model_.mesh().Has("lp") ? model_.mesh().axis("lp").size() : 1; }
  void Use(const SolverCandidate& candidate);
  void UseChoice();
  void EndTrial();
  void PredictOthers();

  ShardedModel& model_;
  comm::Communicator world_;
  mgrit::LayerParallelOptions own_;
  int ranks_on_host_;
  SolverSearch search_;
  double bias_ = 0;
  bool predicted_ = false;
  bool restored_ = false;
  std::optional<SolverCandidate> choice_;  // once it is done
  std::size_t micro_batches_ = 1;          // of a step
  // Of the trial under way; null: it has not begun.
  std::unique_ptr<StepWork> work_;
  std::vector<double> seconds_, serial_seconds_, ratios_, biases_;
};

// Collective. One line that says what --lp-auto would try, from predictions alone. `own` are the options of the flags'
// solver, `measured` the median time of a step's passes with it, `work` the work of this rank.
std::string AdviceOnSolver(ShardedModel& model, const comm::Communicator& world,
                           const mgrit::LayerParallelOptions& own, const mgrit::WorkTimes& work,
                           const StepSeconds& measured, int ranks_on_host);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_AUTO_SOLVER_H_
