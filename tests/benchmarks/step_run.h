// Batches of the layer-parallel GRU classifier on random inputs: times do not depend on the values, and any number of
// steps is possible.
#ifndef PLAIT_TESTS_BENCHMARKS_STEP_RUN_H_
#define PLAIT_TESTS_BENCHMARKS_STEP_RUN_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "comm/communicator.h"
#include "models/gru/layer_parallel/layer_parallel_gru.h"
#include "models/gru/sequence_classifier.h"
#include "tests/benchmarks/setting.h"
#include "tests/benchmarks/timed_network.h"

namespace plait::benchmarks {

struct StepShape {
  gru::GruConfig cell;
  std::int64_t batch = 100;
  std::int64_t steps = 128;
  double final_time = 128;
};

class StepRun final : public TimedNetwork {
 public:
  // Collective. The setting fits the steps.
  StepRun(const StepShape& shape, const Setting& setting, const comm::Communicator& communicator);

  // Collective. Seconds of the scores of `windows` sequences, without gradients, in batches.
  double RunInference(std::int64_t windows);

  mgrit::LayerParallel& solver() override { return parallel_.solver(); }
  std::string Description() const override;
  double StateBytes() const override;
  bool WantsInputGradient() const override { return false; }

 private:
  void ClearGradients() override;
  at::Tensor Open() override { return x_; }
  at::Tensor Propagate(const at::Tensor& opened) override { return parallel_.Forward(opened); }
  at::Tensor Loss(const at::Tensor& propagated) override;
  at::Tensor SerialLoss() override;

  StepShape shape_;
  gru::SequenceClassifier classifier_;
  gru::LayerParallelGru parallel_;
  at::Tensor x_;
  at::Tensor labels_;
};

}  // namespace plait::benchmarks

#endif  // PLAIT_TESTS_BENCHMARKS_STEP_RUN_H_
