// The same layer of several blocks, each with its own weights, in one batched call: for ForwardMany of
// models/stackable_block.h. Dimension 0 is the block.
//
//   const at::Tensor u = Stacked(inputs);                                   // (n, batch, width)
//   const at::Tensor f = at::tanh(Linear(u, Stacked(weights), Stacked(biases)));
//   return AddScaled(u, f, steps).unbind(0);
//
// With gradients disabled, stacking the same tensor n times has stride 0 along n, and the products of n blocks become
// one product with n times the rows. Recorded by autograd. Local.
#ifndef PLAIT_MODELS_STACKED_LAYERS_H_
#define PLAIT_MODELS_STACKED_LAYERS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace plait::stacked {

// Stacks tensors of equal sizes along a new dimension 0. With gradients disabled, a view if they are the same tensor or
// equally spaced in one storage; else a copy, as at::stack. Undefined if the first one is. Different sizes throw
// c10::Error.
at::Tensor Stacked(const std::vector<at::Tensor>& tensors);

// x (n, ..., in), weight (n, out, in), bias (n, out) or undefined -> (n, ..., out).
at::Tensor Linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

// x (n, batch, in, rows...), weight (n, out, in, width...) with one or two spatial dimensions, bias (n, out) or undefined ->
// (n, batch, out, rows...). Stride 1; `padding` zeros on each side. One convolution with n groups.
at::Tensor Convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                       std::int64_t padding);

// x (n, ..., width), weight (n, width), bias (n, width) or undefined.
at::Tensor LayerNorm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon);

// x (n, ..., width), weight (n, width): x / sqrt(mean square + epsilon) * weight.
at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon);

// out[i] = u[i] + scale[i] f[i]. Aborts unless there are n scales.
at::Tensor AddScaled(const at::Tensor& u, const at::Tensor& f, absl::Span<const double> scale);

}  // namespace plait::stacked

#endif  // PLAIT_MODELS_STACKED_LAYERS_H_
