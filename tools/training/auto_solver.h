// --lp-auto: the first steps try solvers beside serial propagation; the fastest whose gradients are near enough goes on.
//
// A trial (solver_search.h) is a few steps. Each computes its gradients by the trial's solver and serially, notes times
// and distance, and takes the exact ones: training loses nothing but time. Behind the first trial, what its steps cost
// and the model of scaling (mgrit/scaling) say what other levels, factors, iterations and holds would take.
#ifndef PLAIT_TOOLS_TRAINING_AUTO_SOLVER_H_
#define PLAIT_TOOLS_TRAINING_AUTO_SOLVER_H_

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

class AutoSolver {
 public:
  // Of a gradient bias where --lp-bias-limit says none.
  static constexpr double kBiasLimit = 0.1;

  // `model` has a solver and outlives this; `own`: its options. `ranks_on_host`: that share this host's cores.
  AutoSolver(ShardedModel& model, const comm::Communicator& world, const mgrit::LayerParallelOptions& own,
             double bias_limit, int ranks_on_host);

  bool done() const { return restored_ || search_.next() == nullptr; }
  // Collective, unless done. A step's forward and backward; behind the last trial the solver is set to the choice.
  parallel::PipelineStep RunMicroBatches(const parallel::NextMicroBatch& next);
  // The distance of the last step's gradients.
  double bias() const { return bias_; }
  // Null: serial propagation. Once it is done.
  const SolverCandidate* choice() const { return choice_.has_value() ? &*choice_ : nullptr; }
  std::string Line() const;

  // The choice in a checkpoint. Before it is done nothing is saved, and the trials begin again.
  void Save(std::map<std::string, std::int64_t>& integers) const;
  // A choice for as many ranks along lp is taken over: done() then. DataLoss for numbers that no run saves.
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
  // Of the trial under way; null: it has not begun.
  std::unique_ptr<StepWork> work_;
  std::vector<double> seconds_, serial_seconds_, ratios_, biases_;
};

// Collective, behind a few steps with the flags' own solver, whose median passes took `seconds` and whose work on this
// rank was `work`: what --lp-auto would look at, in one line. Predictions, without a look at gradients.
std::string AdviceOnSolver(ShardedModel& model, const comm::Communicator& world,
                           const mgrit::LayerParallelOptions& own, const mgrit::WorkTimes& work,
                           double seconds, int ranks_on_host);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_AUTO_SOLVER_H_
