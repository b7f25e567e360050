// Computes the gradients of a step's micro-batches twice, with an inexact solve and exactly, and their distance.
#ifndef PLAIT_TOOLS_TRAINING_GRADIENT_DISTANCE_H_
#define PLAIT_TOOLS_TRAINING_GRADIENT_DISTANCE_H_

#include <functional>

#include "comm/communicator.h"
#include "parallel/pipeline/executor.h"
#include "tools/training/sharded_model.h"

namespace plait::training {

struct GradientComparison {
  parallel::PipelineStep exact;  // result of the exact passes; the engine holds their gradients
  // |exact - inexact| / |exact| in the 2-norm; NaN: a solve diverged, or `overflows`.
  double distance = 0;
  bool overflows = false;  // the exact gradients are not finite, as in a float16 step that is skipped
  // Times of the inexact and of the exact passes on the slowest rank, without the time to load micro-batches.
  double seconds = 0, exact_seconds = 0;
};

// Collective over the mesh; `distance` is the same on every rank. `next` is called once for each micro-batch, and all
// micro-batches are kept until the exact passes. `use_inexact` and `use_exact` configure the solver for the passes that
// follow.
GradientComparison CompareGradients(ShardedModel& model, const comm::Communicator& world,
                                    const parallel::NextMicroBatch& next,
                                    const std::function<void()>& use_inexact,
                                    const std::function<void()>& use_exact);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_GRADIENT_DISTANCE_H_
