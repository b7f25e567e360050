// Linear layers that are split over the tensor axis: by columns (each rank computes some of the outputs), then by rows
// (each rank has the corresponding inputs).
//
//   const std::vector<Shard<1>> qkv = ColumnLinear(axis, x, {{wq}, {wk}, {wv}});   // x: Residual
//   const Residual y = AddRowLinear(axis, x, Attention(qkv), {wo, bias});          // x + ... wo^T + bias
//
// Each pair has one reduction at the end of its forward and one at the end of its backward: with two pairs per block 4
// all-reduces of the rows per layer and step, or with sequence parallelism 4 all-gathers and 4 reduce-scatters of the
// same total bytes (Shoeybi et al., arXiv:1909.08053, section 3; Korthikanti et al., arXiv:2205.05198, section 4.2.2).
// Layers with the same input x share the reduction of its gradient, so they are one call. This reduction overlaps with
// the computation of the weight gradients.
//
// Weights are this rank's (out, in): columns split `out`, rows split `in`. A bias of ColumnLinear is split like its
// weight; that of RowLinear is whole and added once, after the reduction. Recorded by autograd; once differentiable.
// Collective over the axis. A group of one is bitwise identical to models/linear.
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

// x (rows, in), with sequence parallelism (rows / ranks, in) -> for each layer x weight^T + bias (rows, out of this
// rank).
std::vector<Shard<1>> ColumnLinear(const TensorAxis& axis, const Residual& x,
                                   const std::vector<LinearParameters>& layers);

// x (rows, in of this rank) -> the sum over the ranks of x weight^T, plus bias: (rows, out), with sequence parallelism
// (rows / ranks, out).
Residual RowLinear(const TensorAxis& axis, const Shard<1>& x, const LinearParameters& layer);

// RowLinear(x) + residual, without a temporary for the sum.
Residual AddRowLinear(const TensorAxis& axis, const Residual& residual, const Shard<1>& x,
                      const LinearParameters& layer);

}  // namespace plait::tensor_parallel

#endif  // PLAIT_PARALLEL_TENSOR_LINEAR_H_
