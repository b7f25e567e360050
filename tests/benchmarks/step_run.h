// Batches of the layer-parallel GRU classifier with a stopwatch on each part. Inputs are random numbers:
// times do not depend on them, and any number of steps can be had.
#ifndef PLAIT_TESTS_BENCHMARKS_STEP_RUN_H_
#define PLAIT_TESTS_BENCHMARKS_STEP_RUN_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "models/gru/layer_parallel/layer_parallel_gru.h"
#include "models/gru/sequence_classifier.h"
#include "tests/benchmarks/setting.h"

namespace plait::benchmarks {

struct StepShape {
  gru::GruConfig cell;
  std::int64_t batch = 100;
  std::int64_t steps = 128;
  double final_time = 128;
};

// Seconds of one batch on this rank. A gradient with respect to the GRU's state is taken by hand between head
// and backward solve, so that the parts can be told apart.
struct BatchSeconds {
  double forward = 0;   // the GRU: inputs, solve, broadcast of the last state
  double head = 0;      // linear head, loss, and their backward
  double backward = 0;  // the GRU: adjoint solve, weight gradients and their sum over ranks
  double forward_solve = 0;
  double backward_solve = 0;
  double work = 0;      // inside Phi, its adjoint and the weight gradients
  double messages = 0;  // this rank stood still in them: for a neighbour that is late, or for the data
  double total() const { return forward + head + backward; }
};

class StepRun {
 public:
  // Collective. The setting fits the steps.
  StepRun(const StepShape& shape, const Setting& setting, const comm::Communicator& communicator);

  // Collective.
  BatchSeconds RunBatch();
  // Collective. Seconds of the scores of `windows` sequences, without gradients, in batches.
  double RunInference(std::int64_t windows);
  // Seconds of a batch of the same network, step after step on this rank alone: forward, loss, backward.
  // Local.
  double RunSerialBatch();
  // Evaluations of all ranks in the last batch.
  double ForwardEvaluations() const;
  double BackwardEvaluations() const;
  // Numbers in the gradient of the GRU.
  double GradientCount() const;

  // The GRU's.
  mgrit::LayerParallel& solver() { return parallel_.solver(); }

 private:
  double MessageSeconds() const;
  double SumOverRanks(const mgrit::WorkCount& count) const;

  StepShape shape_;
  Setting setting_;
  comm::Communicator communicator_;
  gru::SequenceClassifier classifier_;
  gru::LayerParallelGru parallel_;
  at::Tensor x_;
  at::Tensor labels_;
};

}  // namespace plait::benchmarks

#endif  // PLAIT_TESTS_BENCHMARKS_STEP_RUN_H_
