// Initial values of torch::nn::Linear and torch::nn::Conv2d for parameters that a model registers itself.
//
//   DrawByFanIn(weight, bias);   // both uniform in +-1 / sqrt(inputs of one output)
//
// The numbers are PyTorch's bit for bit, from LibTorch's generator of the CPU, in float32 whatever type and
// device the parameters have: models of other types and devices start from the same numbers, rounded.
#ifndef PLAIT_MODELS_FAN_IN_INITIALISATION_H_
#define PLAIT_MODELS_FAN_IN_INITIALISATION_H_

#include <ATen/core/Tensor.h>

namespace plait::models {

// `weight` (out, in, ...), `bias` (out), drawn in this order. Nothing is drawn for tensors of kMeta.
void DrawByFanIn(const at::Tensor& weight, const at::Tensor& bias);

}  // namespace plait::models

#endif  // PLAIT_MODELS_FAN_IN_INITIALISATION_H_
