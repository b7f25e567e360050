// Layers of several blocks at once, each with weights of its own: what ForwardMany of models/stackable_block.h is made
// of. Index 0 is that of the block.
//
//   const at::Tensor u = Stacked(inputs);                                   // (n, batch, width)
//   const at::Tensor f = at::tanh(Linear(u, Stacked(weights), Stacked(biases)));
//   return AddScaled(u, f, steps).unbind(0);
//
// Where all blocks are one, Stacked has stride 0 along n, and products of n blocks are one of n times the rows. Recorded
// by autograd as their operators are. Local.
#ifndef PLAIT_MODELS_STACKED_LAYERS_H_
#define PLAIT_MODELS_STACKED_LAYERS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace plait::stacked {

// (n, sizes of each): a view without a copy where the tensors lie equally far apart in one storage, or are one tensor;
// else a copy. Undefined where the first one is. Tensors of other sizes or types throw c10::Error.
at::Tensor Stacked(const std::vector<at::Tensor>& tensors);

// x (n, ..., in), weight (n, out, in), bias (n, out) or undefined -> (n, ..., out).
at::Tensor Linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

// x (n, batch, in, rows...), weight (n, out, in, width...) of one or two space dimensions, bias (n, out) or undefined ->
// (n, batch, out, rows...). Stride 1; `padding` zeros at each end. One convolution of n groups.
at::Tensor Convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                       std::int64_t padding);

// x (n, ..., width), weight (n, width), bias (n, width) or undefined.
at::Tensor LayerNorm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon);

// x (n, ..., width) over its root mean square, times weight (n, width).
at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon);

// u + scale[i] f for i of n.
at::Tensor AddScaled(const at::Tensor& u, const at::Tensor& f, absl::Span<const double> scale);

}  // namespace plait::stacked

#endif  // PLAIT_MODELS_STACKED_LAYERS_H_
