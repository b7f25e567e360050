// The network that is trained: GRU and linear head, its steps solved layer-parallel or taken in turn, with
// the timers of what it does.
//
//   Network network(config, comm, /*channels=*/9, /*classes=*/6, timers);
//   at::Tensor scores = network.Scores(x);           // x: (batch, seq, channels); (batch, classes), before
//   softmax loss(scores).backward(); network.CountBackward();
//
// Collective: every rank gives the same x and gets the same bits of scores and gradients. Parameters are
// drawn from the seed, the same for any number of ranks.
#ifndef PLAIT_TOOLS_GRU_TRAINING_NETWORK_H_
#define PLAIT_TOOLS_GRU_TRAINING_NETWORK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/timer.h"
#include "comm/communicator.h"
#include "models/gru/layer_parallel/layer_parallel_gru.h"
#include "models/gru/sequence_classifier.h"
#include "tools/gru_training/config.h"

namespace plait::gru_training {

// What a solve came to. Residuals by iteration; NaN where none was taken. Serial: one iteration, residual 0.
struct SolveReport {
  int iterations = 1;
  std::vector<double> residuals = {0.0};
  double last_residual() const { return residuals.empty() ? -1.0 : residuals.back(); }
};

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

class Network {
 public:
  // Collective. `config` has passed Check for the ranks of `communicator`; `timers` outlives the network.
  Network(const Config& config, const comm::Communicator& communicator, std::int64_t channels,
          std::int64_t classes, base::TimerSet& timers);

  // Recorded by autograd unless an at::NoGradGuard says otherwise.
  at::Tensor Scores(const at::Tensor& x);
  // Through the serial network on the same parameters. Local, not recorded.
  at::Tensor SerialScores(const at::Tensor& x);
  // After a backward: its share in the timers.
  void CountBackward();

  bool layer_parallel() const { return parallel_ != nullptr; }
  SolveReport last_forward() const;
  SolveReport last_backward() const;
  // gru.weight_ih_l0, ..., head.bias; leaves.
  const NamedTensors& parameters() const { return parameters_; }
  at::TensorOptions options() const { return options_; }

 private:
  void CountSolve(const char* direction, const mgrit::Solution& solution);

  at::TensorOptions options_;
  base::TimerSet& timers_;
  gru::SequenceClassifier classifier_;
  std::unique_ptr<gru::SerialGru> test_gru_;
  std::unique_ptr<gru::LayerParallelGru> parallel_;
  NamedTensors parameters_;
};

}  // namespace plait::gru_training

#endif  // PLAIT_TOOLS_GRU_TRAINING_NETWORK_H_
