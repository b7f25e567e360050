// Initial values of torch::nn::Linear and torch::nn::Conv2d for parameters that a model registers itself.
//
//   DrawByFanIn(weight, bias);   // both uniform in +-1 / sqrt(fan_in)
//
// Bitwise equal to PyTorch's. Drawn in float32 from LibTorch's CPU generator whatever dtype and device the
// parameters have: models of other dtypes and devices start from the same numbers, rounded.
#ifndef PLAIT_MODELS_FAN_IN_INITIALISATION_H_
#define PLAIT_MODELS_FAN_IN_INITIALISATION_H_

#include <ATen/core/Tensor.h>

namespace plait::models {

// `weight` (out, in, ...), `bias` (out), drawn in this order. Does nothing if `weight` is on the meta device.
void DrawByFanIn(const at::Tensor& weight, const at::Tensor& bias);

}  // namespace plait::models

#endif  // PLAIT_MODELS_FAN_IN_INITIALISATION_H_
