// The k largest values of each row. Private to gate.h.
#ifndef PLAIT_PARALLEL_MOE_SELECT_EXPERTS_H_
#define PLAIT_PARALLEL_MOE_SELECT_EXPERTS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace plait::moe {

// Columns of the k largest values of each row, the largest first, of equal values the lower column first.
// (rows, k) of int64. Rows that begin with NaN have -1. `values` (rows, columns), without a gradient.
at::Tensor SelectExperts(const at::Tensor& values, int k);

// Rows with a value that is not finite: a column (rows, 1) that is NaN for them and 1 for the others, and
// their number; undefined where there is none.
struct NotFinite {
  at::Tensor mark = {};
  std::int64_t rows = 0;
};
NotFinite FindNotFinite(const at::Tensor& values);

namespace internal {
// The same by LibTorch's operators, on any device.
at::Tensor SelectByOperators(const at::Tensor& values, int k);
NotFinite FindByOperators(const at::Tensor& values);
}  // namespace internal

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_SELECT_EXPERTS_H_
