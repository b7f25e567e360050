// Activations, forward and backward in one pass each, for layers with a backward pass of their own.
//
//   Activate({Activation::kSilu, gate, in}, y);                                  // y = silu(gate) * in
//   ActivateBackward({Activation::kSilu, gate, in}, of_y, {of_gate, of_in, y});  // recomputes y
//   Activate({Activation::kGelu, x}, y, slope);                                  // and slope = gelu'(x)
//
// All tensors are contiguous, of one shape and dtype. With own kernels (own_kernels.h) computed in float32 and rounded
// once, else by LibTorch's operators. Not recorded by autograd. Local.
#ifndef PLAIT_MODELS_ROWWISE_ACTIVATION_H_
#define PLAIT_MODELS_ROWWISE_ACTIVATION_H_

#include <ATen/core/Tensor.h>

#include "models/rowwise/kernels/row_functions.h"

namespace plait::rowwise {

// The inputs of y = f(x) * factor, or y = f(x) if `factor` is undefined.
struct ActivationInputs {
  Activation f = Activation::kGelu;
  at::Tensor x;
  at::Tensor factor = {};
};

// Output tensors: gradients of x and of the factor. of_x or of_factor may be of_y itself.
struct ActivationResults {
  at::Tensor of_x;
  at::Tensor of_factor = {};  // if there is a factor
  at::Tensor y = {};          // if defined: recomputed values
};

// Writes y, and f'(x) to `slope` if it is defined, which needs own kernels (HasOwnKernels), else aborts.
void Activate(const ActivationInputs& inputs, const at::Tensor& y, const at::Tensor& slope = {});
void ActivateBackward(const ActivationInputs& inputs, const at::Tensor& of_y,
                      const ActivationResults& results);

}  // namespace plait::rowwise

#endif  // PLAIT_MODELS_ROWWISE_ACTIVATION_H_
