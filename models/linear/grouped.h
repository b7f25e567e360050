// Products of many groups of rows in one call: groups may be of any size, none included, and nothing is padded.
//
//   GroupOffsets offsets = {0, 3, 3, 70};                                      // three groups of 3, 0 and 67 rows
//   MultiplyGroups(x, weight.transpose(1, 2), offsets, out, {.bias = bias});   // out_g = x_g weight[g]^T + bias[g]
//   GroupWeightGradients(of_out, x, offsets, of_weight);                       // of_weight[g] = of_out_g^T x_g
//   GroupBiasGradients(of_out, offsets, of_bias);                              // of_bias[g] = sum of the rows of of_out_g
//
// Group g is the rows from offsets[g] - offsets[0] on, offsets[g + 1] - offsets[g] of them: a part of the offsets goes
// with the same part of the rows. Everything is written into tensors that are there; other rows of them are left alone.
//
// Kernels of models/linear/kernels for float32 and bfloat16 on processors that have any: threads share the panels of
// all groups, weights are read as they lie, and a row has the same bits in any grouping and on any number of
// threads. On CUDA, in bfloat16, at::_grouped_mm; else a loop of LibTorch's products. Tensors of one type, of at least
// one dimension with a stride of one among the last two; others are copied, `out` must have one along its last
// dimension. Not recorded by autograd. Local. Other shapes abort.
#ifndef PLAIT_MODELS_LINEAR_GROUPED_H_
#define PLAIT_MODELS_LINEAR_GROUPED_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/types/span.h"

namespace plait::linear {

using GroupOffsets = absl::Span<const std::int64_t>;  // groups + 1, ascending

enum class GroupKernels { kBest, kLoop };  // kLoop: LibTorch's products wherever this runs

struct GroupAddends {
  at::Tensor bias = {};      // (groups, columns)
  bool adds_to_out = false;  // what is in `out` is a summand
};

// left (rows, inner), right (groups, inner, columns), out (rows, columns)
void MultiplyGroups(const at::Tensor& left, const at::Tensor& right, GroupOffsets offsets,
                    const at::Tensor& out, const GroupAddends& addends = {},
                    GroupKernels kernels = GroupKernels::kBest);

// left (rows, m), right (rows, n), out (groups, m, n); zero for a group without rows
void GroupWeightGradients(const at::Tensor& left, const at::Tensor& right, GroupOffsets offsets,
                          const at::Tensor& out, GroupKernels kernels = GroupKernels::kBest);

// rows (rows, columns), out (groups, columns); zero for a group without rows
void GroupBiasGradients(const at::Tensor& rows, GroupOffsets offsets, const at::Tensor& out,
                        GroupKernels kernels = GroupKernels::kBest);

}  // namespace plait::linear

#endif  // PLAIT_MODELS_LINEAR_GROUPED_H_
