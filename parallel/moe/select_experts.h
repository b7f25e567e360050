// The k largest values of each row. Private to gate.h.
#ifndef PLAIT_PARALLEL_MOE_SELECT_EXPERTS_H_
#define PLAIT_PARALLEL_MOE_SELECT_EXPERTS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace plait::moe {

// The columns of the k largest values of each row, largest first; ties: the lower column first. `values` (rows,
// columns), without a gradient -> (rows, k) int64; -1 for rows that begin with NaN.
at::Tensor SelectExperts(const at::Tensor& values, int k);

// Rows with a non-finite value: `mark` (rows, 1) is NaN for them and 1 for the others, undefined if there are none;
// `rows` is their number.
struct NotFinite {
  at::Tensor mark = {};
  std::int64_t rows = 0;
};
NotFinite FindNotFinite(const at::Tensor& values);

namespace internal {
// The same with LibTorch's operators, on any device.
at::Tensor SelectByOperators(const at::Tensor& values, int k);
NotFinite FindByOperators(const at::Tensor& values);
}  // namespace internal

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_SELECT_EXPERTS_H_
