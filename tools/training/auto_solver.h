// --lp-auto: the first steps try solvers beside serial propagation; the fastest whose gradients are near enough goes on.
//
// A trial (solver_search.h) is a few steps. Each computes its gradients by the trial's solver and serially, notes times
// and distance, and takes the exact ones: training loses nothing but time. Behind the first trial, what its steps cost
// and the model of scaling (mgrit/scaling) say what other levels, factors, iterations and holds would take.
#ifndef PLAIT_TOOLS_TRAINING_AUTO_SOLVER_H_
#define PLAIT_TOOLS_TRAINING_AUTO_SOLVER_H_

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "parallel/pipeline/executor.h"
#include "tools/training/sharded_model.h"
#include "tools/training/solver_search.h"

namespace plait::training {

class AutoSolver {
 public:
  // Of a gradient bias where --lp-bias-limit says none.
  static constexpr double kBiasLimit = 0.1;

  // `model` has a solver and outlives this; `own`: its options. `ranks_on_host`: that share this host's cores.
  AutoSolver(ShardedModel& model, const comm::Communicator& world, const mgrit::LayerParallelOptions& own,
             double bias_limit, int ranks_on_host);

  bool done() const { return search_.next() == nullptr; }
  // Collective, unless done. A step's forward and backward; behind the last trial the solver is set to the choice.
  parallel::PipelineStep RunMicroBatches(const parallel::NextMicroBatch& next);
  // The distance of the last step's gradients.
  double bias() const { return bias_; }
  // Null: serial propagation.
  const SolverCandidate* choice() const { return search_.choice(); }
  std::string Line() const { return "--lp-auto chose " + search_.Reason(); }

 private:
  void Use(const SolverCandidate& candidate);
  void EndTrial();
  void PredictOthers();

  ShardedModel& model_;
  comm::Communicator world_;
  mgrit::LayerParallelOptions own_;
  int ranks_on_host_;
  SolverSearch search_;
  double bias_ = 0;
  bool predicted_ = false;
  mgrit::WorkTimes before_;  // work of the first step
  // Of the trial under way.
  bool began_ = false;
  std::vector<double> seconds_, serial_seconds_, biases_;
};

// Collective, behind a few steps with the flags' own solver, whose median passes took `seconds`, and of
// whose work `before` is left out: what --lp-auto would
// look at, in one line. Predictions, without a look at gradients.
std::string AdviceOnSolver(ShardedModel& model, const comm::Communicator& world,
                           const mgrit::LayerParallelOptions& own, const mgrit::WorkTimes& before,
                           double seconds, int ranks_on_host);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_AUTO_SOLVER_H_
