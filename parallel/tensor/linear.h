// Linear layers that are split over the tensor axis: by columns (each rank has some outputs), then by rows
// (each rank has the inputs that these gave).
//
//   const std::vector<Shard<1>> qkv = ColumnLinear(axis, x, {{wq}, {wk}, {wv}});   // x: Residual
//   const Residual y = AddRowLinear(axis, x, Attention(qkv), {wo, bias});          // x + ... wo^T + bias
//
// A block of two such pairs has one reduction at the entry of a pair's backward and one at the exit of its
// forward: 4 all-reduces of the rows per layer and step, or as many bytes as 4 all-gathers and 4
// reduce-scatters under sequence parallelism (Shoeybi et al., arXiv:1909.08053, section 3; Korthikanti et al.,
// arXiv:2205.05198, section 4.2.2). Layers that read the same x share its reduction, so they are one call. In
// the backward the reduction of x's gradient travels while the gradients of the weights are computed.
//
// Weights are (out, in) of this rank: columns split `out`, rows split `in`. A bias of ColumnLinear is split as
// its weight; that of RowLinear is whole, added once, behind the sum. Recorded by autograd, once
// differentiable. Collective along the axis. A group of one has the bits of models/linear.
#ifndef PLAIT_PARALLEL_TENSOR_LINEAR_H_
#define PLAIT_PARALLEL_TENSOR_LINEAR_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "parallel/tensor/tensor_axis.h"
#include "parallel/tensor/values.h"

namespace plait::tensor_parallel {

struct LinearParameters {
  at::Tensor weight;
  at::Tensor bias = {};  // undefined: none
};

// x (rows, in) -> for each layer x weight^T + bias (rows, out of this rank).
std::vector<Shard<1>> ColumnLinear(const TensorAxis& axis, const Residual& x,
                                   const std::vector<LinearParameters>& layers);

// x (rows, in of this rank) -> the sum over the ranks of x weight^T, + bias (rows, out).
Residual RowLinear(const TensorAxis& axis, const Shard<1>& x, const LinearParameters& layer);

// RowLinear(x) + residual, without the sum in between.
Residual AddRowLinear(const TensorAxis& axis, const Residual& residual, const Shard<1>& x,
                      const LinearParameters& layer);

}  // namespace plait::tensor_parallel

#endif  // PLAIT_PARALLEL_TENSOR_LINEAR_H_
