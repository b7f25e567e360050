// Activations on arrays, forward and backward in one pass each, for layers with a backward pass of their own.
//
//   Activate({Activation::kSilu, gate, in}, y);                                  // y = silu(gate) in
//   ActivateBackward({Activation::kSilu, gate, in}, of_y, {of_gate, of_in, y});  // y is computed again
//   Activate({Activation::kGelu, x}, y, slope);                                  // slope = gelu'(x), too
//
// All tensors are contiguous, of one shape and type. Kernels of our own for float32 and bfloat16 on processors that
// have any: computed in float32, rounded once. Else LibTorch's operators. Not recorded by autograd. Local.
#ifndef PLAIT_MODELS_ROWWISE_ACTIVATION_H_
#define PLAIT_MODELS_ROWWISE_ACTIVATION_H_

#include <ATen/core/Tensor.h>

#include "models/rowwise/kernels/row_functions.h"

namespace plait::rowwise {

// Of f(x) factor; without a factor (undefined), of f(x).
struct ActivationInputs {
  Activation f = Activation::kGelu;
  at::Tensor x;
  at::Tensor factor = {};
};

// Tensors that are written. of_x or of_factor may be of_y itself.
struct ActivationResults {
  at::Tensor of_x;
  at::Tensor of_factor = {};  // where there is a factor
  at::Tensor y = {};          // the values again, where it is defined
};

// `slope`: f'(x) is written there, where it is defined; for kernels of our own (own_kernels.h) only.
void Activate(const ActivationInputs& inputs, const at::Tensor& y, const at::Tensor& slope = {});
void ActivateBackward(const ActivationInputs& inputs, const at::Tensor& of_y,
                      const ActivationResults& results);

}  // namespace plait::rowwise

#endif  // PLAIT_MODELS_ROWWISE_ACTIVATION_H_
