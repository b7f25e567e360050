// The gradients of a step's micro-batches computed twice, by an inexact solve and exactly, and how far they are apart.
#ifndef PLAIT_TOOLS_TRAINING_GRADIENT_DISTANCE_H_
#define PLAIT_TOOLS_TRAINING_GRADIENT_DISTANCE_H_

#include <functional>

#include "comm/communicator.h"
#include "parallel/pipeline/executor.h"
#include "tools/training/sharded_model.h"

namespace plait::training {

struct GradientComparison {
  parallel::PipelineStep exact;  // of the second passes, whose gradients the engine holds
  double distance = 0;           // |second gradient - first one| / |second gradient|; NaN: a solve diverged
  // Of the first and the second passes, on the slowest rank, without loading the micro-batches.
  double seconds = 0, exact_seconds = 0;
};

// Collective. `next` is called once for each micro-batch. `use_inexact` and `use_exact` set how the model is solved. The
// distance is over the whole mesh, the same on every rank.
GradientComparison CompareGradients(ShardedModel& model, const comm::Communicator& world,
                                    const parallel::NextMicroBatch& next,
                                    const std::function<void()>& use_inexact,
                                    const std::function<void()>& use_exact);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_GRADIENT_DISTANCE_H_
