// Adam or plain gradient descent on every rank's own copy of the parameters, with its state as named tensors.
//
//   Optimizer optimizer(config, network.parameters());
//   optimizer.ZeroGradients();  ...  loss.backward();  optimizer.Step();
//   for (auto& [name, tensor] : optimizer.State()) ...      // "exp_avg.gru.weight_ih_l0", ...; may be
//   written to
//
// Local: gradients are the same bits on every rank, and so are the parameters afterwards.
#ifndef PLAIT_TOOLS_GRU_TRAINING_OPTIMIZER_H_
#define PLAIT_TOOLS_GRU_TRAINING_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "tools/gru_training/config.h"
#include "tools/gru_training/network.h"

namespace torch::optim {
class Optimizer;
}

namespace plait::gru_training {

class Optimizer {
 public:
  // Adam with torch's defaults (Kingma and Ba, ICLR 2015: betas 0.9 and 0.999, epsilon 1e-8), or SGD.
  Optimizer(const Config& config, const NamedTensors& parameters);
  ~Optimizer();

  void ZeroGradients();
  void Step();

  // "adam" or "sgd".
  const std::string& kind() const { return kind_; }
  // Moments of every parameter, which share memory with the optimizer's; none for gradient descent.
  NamedTensors State() const;
  // How many steps were taken; Adam's bias correction depends on it.
  std::int64_t steps() const;
  void set_steps(std::int64_t steps);

 private:
  std::string kind_;
  NamedTensors parameters_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::int64_t steps_ = 0;
};

}  // namespace plait::gru_training

#endif  // PLAIT_TOOLS_GRU_TRAINING_OPTIMIZER_H_
