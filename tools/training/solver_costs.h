// Predicts the time of other solver options for this run's network, by the scaling model (mgrit/scaling) on measured
// work.
#ifndef PLAIT_TOOLS_TRAINING_SOLVER_COSTS_H_
#define PLAIT_TOOLS_TRAINING_SOLVER_COSTS_H_

#include <cstdint>
#include <functional>

#include "comm/communicator.h"
#include "mgrit/layer_parallel/layer_parallel.h"
#include "mgrit/scaling/scaling_model.h"
#include "tools/training/sharded_model.h"
#include "tools/training/solver_search.h"

namespace plait::training {

class SolverCosts {
 public:
  // Collective over `world`. Averages `work`, which the solver of `model` did on this rank, over all ranks, and
  // measures messages along lp. `ranks_on_host`: number of ranks that share this host's cores.
  SolverCosts(ShardedModel& model, const comm::Communicator& world, const mgrit::WorkTimes& work,
              int ranks_on_host);

  // Seconds of forward and backward through the solver's steps on the slowest rank, without prologue and epilogue.
  double Predict(const SolverCandidate& candidate) const;
  double PredictSerial() const;
  int ranks() const { return shape_.ranks; }  // of the solver

 private:
  mgrit::scaling::BatchShape ShapeOf(const SolverCandidate& candidate) const;

  mgrit::scaling::BatchShape shape_;  // but for the solver
  std::function<std::int64_t(const mgrit::StepInterval&, int hold)> evaluations_;
  mgrit::scaling::Costs costs_;
  mgrit::scaling::Machine machine_;
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_SOLVER_COSTS_H_
