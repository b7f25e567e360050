// Adam and AdamW, one pass over memory per step (LibTorch's fused kernel).
//
//   parallel::FusedAdam adam(model.parameters(), {.lr = 1e-3});
//   loss.backward();
//   adam.Step();
//   adam.ClearGradients();
//
// Kingma & Ba, "Adam", arXiv:1412.6980, algorithm 1; with decoupled_weight_decay Loshchilov & Hutter,
// arXiv:1711.05101, algorithm 2. Same formulas and defaults as torch.optim.Adam and AdamW. Local.
#ifndef PLAIT_PARALLEL_OPTIM_FUSED_ADAM_H_
#define PLAIT_PARALLEL_OPTIM_FUSED_ADAM_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace plait::parallel {

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled_weight_decay = false;  // AdamW
};

class FusedAdam {
 public:
  // Parameters of one type and device. Moments are zero at first, in the parameters' type.
  FusedAdam(std::vector<at::Tensor> parameters, const AdamOptions& options);

  // Parameters without a gradient stay as they are.
  void Step();
  // The same step in parts, while other gradients are still on their way: BeginStep once, then every
  // parameter in one Apply, by its index.
  void BeginStep();
  void Apply(absl::Span<const std::size_t> parameters);
  // The next backward then stores its gradients instead of adding to the old ones.
  void ClearGradients();

  void set_lr(double lr) { options_.lr = lr; }
  std::int64_t steps() const { return steps_; }
  // In the order of the parameters.
  const std::vector<at::Tensor>& first_moments() const { return first_; }
  const std::vector<at::Tensor>& second_moments() const { return second_; }

 private:
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> first_, second_;
  AdamOptions options_;
  at::Tensor step_;  // float32, as the kernel wants it
  std::int64_t steps_ = 0;
  std::vector<std::size_t> all_;  // indices
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_OPTIM_FUSED_ADAM_H_
