// What the work of a network's steps takes in a running training: the measure behind --lp-auto and its advice.
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
// The first step is not counted: memory is allocated in it, caches are cold. On a GPU the second one waits for each piece
// of work, so that pieces are timed on the device and not by the host that starts them; it alone is counted as work, and
// what the step takes as a whole is not what steps take.
#ifndef PLAIT_TOOLS_TRAINING_STEP_WORK_H_
#define PLAIT_TOOLS_TRAINING_STEP_WORK_H_

#include "mgrit/layer_parallel/work_times.h"
#include "tools/training/sharded_model.h"

namespace plait::training {

class StepWork {
 public:
  // `model` has a solver and outlives this.
  explicit StepWork(ShardedModel& model) : model_(model) {}

  // Local, around each step.
  void Begin();
  void End();
  // Whether the last step took what steps take.
  bool counts() const { return steps_ > (on_device() ? 2 : 1); }
  // Of the counted steps of this rank so far.
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
