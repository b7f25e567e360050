// Gather and scatter-add of rows by index, to sort tokens by expert and back.
//
//   at::Tensor sorted = GatherRows(rows, index);                     // row i is rows[index[i]]
//   at::Tensor back = SumRows(sorted, index, rows.size(0));          // its transpose
//
// Indices are on the host. Sums are computed in the order of i, for half precision in float32, and rounded once:
// deterministic, on every device. On the meta device results have only shapes. Not recorded by autograd. Local.
#ifndef PLAIT_PARALLEL_MOE_ROWS_H_
#define PLAIT_PARALLEL_MOE_ROWS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace plait::moe {

using RowNumbers = std::vector<std::int64_t>;

// rows (n, width) -> (index.size(), width).
at::Tensor GatherRows(const at::Tensor& rows, const RowNumbers& index);

// rows (index.size(), width) -> (count, width): row index[i] is the sum of scale[i] * rows[i], zero if there are none.
// `scale` (index.size()) of any floating-point type; undefined: 1.
at::Tensor SumRows(const at::Tensor& rows, const RowNumbers& index, std::int64_t count,
                   const at::Tensor& scale = {});

// The gradient of SumRows with a scale. `gradient` (count, width) of its result, `rows` what it was called with.
struct ScaledRowGradients {
  at::Tensor rows;   // (index.size(), width): scale[i] * gradient[index[i]]
  at::Tensor scale;  // (index.size()): of the scale's type
};
ScaledRowGradients SumRowsBackward(const at::Tensor& gradient, const RowNumbers& index,
                                   const at::Tensor& rows, const at::Tensor& scale);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_ROWS_H_
