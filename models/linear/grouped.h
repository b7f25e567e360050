// Grouped matrix products: one call for many groups of rows, each of any size (also empty), without padding.
//
//   const std::vector<std::int64_t> offsets = {0, 3, 3, 70};        // three groups of 3, 0 and 67 rows
//   MultiplyGroups(x, weight.transpose(1, 2), offsets, out, {.bias = bias});   // out_g = x_g weight[g]^T + bias[g]
//   GroupWeightGradients(of_out, x, offsets, of_weight);                       // of_weight[g] = of_out_g^T x_g
//   GroupBiasGradients(of_out, offsets, of_bias);                              // of_bias[g] = sum of the rows of of_out_g
//
// Group g consists of rows offsets[g] - offsets[0] to offsets[g + 1] - offsets[0] - 1, so that a subspan of the offsets
// goes with the corresponding subset of the rows. Results are written into existing tensors.
//
// On CPUs with own kernels (models/linear/kernels), in float32 and bfloat16, threads share the panels of all groups,
// and a row's result is bitwise identical in any grouping and on any number of threads. On CUDA, in bfloat16 and if
// strides allow, this is at::_grouped_mm; else a loop of LibTorch's products. All tensors have one dtype and device.
// Operands without a stride of 1 in one of their last two dimensions are copied; `out` must have stride 1 in its last
// dimension. Not recorded by autograd. Local. Aborts if shapes, dtypes or strides do not fit.
#ifndef PLAIT_MODELS_LINEAR_GROUPED_H_
#define PLAIT_MODELS_LINEAR_GROUPED_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/types/span.h"

namespace plait::linear {

using GroupOffsets = absl::Span<const std::int64_t>;  // (groups + 1), not descending

enum class GroupKernels { kBest, kLoop };  // kLoop: always the loop of LibTorch's products

struct GroupAddends {
  at::Tensor bias = {};      // (groups, columns)
  bool adds_to_out = false;  // accumulate into `out`
};

// out_g = left_g right[g] + bias[g]; left (rows, inner), right (groups, inner, columns), out (rows, columns).
void MultiplyGroups(const at::Tensor& left, const at::Tensor& right, GroupOffsets offsets,
                    const at::Tensor& out, const GroupAddends& addends = {},
                    GroupKernels kernels = GroupKernels::kBest);

// out[g] = left_g^T right_g, zero for an empty group; left (rows, m), right (rows, n), out (groups, m, n).
void GroupWeightGradients(const at::Tensor& left, const at::Tensor& right, GroupOffsets offsets,
                          const at::Tensor& out, GroupKernels kernels = GroupKernels::kBest);

// out[g] = sum of the rows of group g, zero for an empty group; rows (rows, columns), out (groups, columns).
void GroupBiasGradients(const at::Tensor& rows, GroupOffsets offsets, const at::Tensor& out,
                        GroupKernels kernels = GroupKernels::kBest);

}  // namespace plait::linear

#endif  // PLAIT_MODELS_LINEAR_GROUPED_H_
