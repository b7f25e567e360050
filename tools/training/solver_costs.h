// What the steps of this run's network cost, and what other ways to solve it would: the model of scaling on measured work.
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
  // Collective. Of `work` that `model`'s solver has done on this rank, mean over all ranks, and of messages along lp.
  // `ranks_on_host`: of this host, which share its cores.
  SolverCosts(ShardedModel& model, const comm::Communicator& world, const mgrit::WorkTimes& work,
              int ranks_on_host);

  // Seconds of forward and backward through the network, on the slowest rank; without what comes before and behind it.
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
