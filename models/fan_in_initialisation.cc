#include "models/fan_in_initialisation.h"

#include <ATen/ops/empty.h>
#include <torch/nn/init.h>

#include <cmath>

namespace plait::models {

void DrawByFanIn(const at::Tensor& weight, const at::Tensor& bias) {
  if (weight.is_meta()) return;
  const at::Tensor weights = at::empty(weight.sizes(), at::kFloat);
  const at::Tensor biases = at::empty(bias.sizes(), at::kFloat);
  torch::nn::init::kaiming_uniform_(weights, std::sqrt(5));
  const double fan_in = weight.numel() / static_cast<double>(weight.size(0));
  torch::nn::init::uniform_(biases, -1 / std::sqrt(fan_in), 1 / std::sqrt(fan_in));
  weight.detach().copy_(weights);
  bias.detach().copy_(biases);
}

}  // namespace plait::models
