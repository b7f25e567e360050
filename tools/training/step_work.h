// Measures the work of a solver's steps during training, for --lp-auto and its advice.
//
//   StepWork measured(model);
//   for (...) {
//     measured.Begin();
//     ... forward and backward of a training step ...
//     measured.End();
//     if (measured.counts()) seconds.push_back(...);
//   }
//   SolverCosts costs(model, world, measured.work(), ranks_on_host);
//
// The first step is not measured: it allocates memory and caches are cold. On a GPU the solver synchronizes with the
// device for each piece of work in the second step, so that work() has device times; that step is slower for it, so it
// is the only one in work(), and counts() excludes it from the times of whole steps.
#ifndef PLAIT_TOOLS_TRAINING_STEP_WORK_H_
#define PLAIT_TOOLS_TRAINING_STEP_WORK_H_

#include "mgrit/layer_parallel/work_times.h"
#include "tools/training/sharded_model.h"

namespace plait::training {

class StepWork {
 public:
  // `model` has a solver and outlives this.
  explicit StepWork(ShardedModel& model) : model_(model) {}

  // Call around each step. Local.
  void Begin();
  void End();
  // Whether the duration of the last step is representative.
  bool counts() const { return steps_ > (on_device() ? 2 : 1); }
  // Work of this rank in the measured steps so far.
  const mgrit::WorkTimes& work() const { return work_; }

 private:
  bool on_device() const { return !model_.device().is_cpu(); }
  bool waits() const { return on_device() && steps_ == 1; }

  ShardedModel& model_;
  int steps_ = 0;  // that have ended
  mgrit::WorkTimes before_, work_;
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_STEP_WORK_H_
