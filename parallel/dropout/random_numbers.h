// Random numbers that depend only on a seed and an index, not on a generator's state: the same for any split of work
// over ranks. By the counter-based generator "squares" (Widynski, arXiv:2004.06278, four rounds).
//
//   // (rows, columns); `row_indices`: indices of the rows in the tensor of the whole batch
//   at::Tensor u = dropout::UniformNumbers(seed, row_indices, columns);
//   at::Tensor n = dropout::NormalNumbers(seed, row_indices, columns);
//
// Use different seeds for different purposes (base::DeriveSeed). Local.
#ifndef PLAIT_PARALLEL_DROPOUT_RANDOM_NUMBERS_H_
#define PLAIT_PARALLEL_DROPOUT_RANDOM_NUMBERS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "base/seed.h"

namespace plait::dropout {

// The generator's keys are odd.
inline std::uint64_t KeyOf(std::uint64_t seed) { return base::DeriveSeed(seed, "dropout mask") | 1; }

// 32 random bits.
inline std::uint32_t RandomBits(std::uint64_t key, std::uint64_t index) {
  const auto swap_halves = [](std::uint64_t x) { return (x >> 32) | (x << 32); };
  std::uint64_t x = index * key;
  const std::uint64_t y = x, z = y + key;
  x = swap_halves(x * x + y);
  x = swap_halves(x * x + z);
  x = swap_halves(x * x + y);
  return static_cast<std::uint32_t>((x * x + z) >> 32);
}

// RandomBits for each of `indices` (int64), as int64, by LibTorch's integer operators on any device.
at::Tensor RandomBits(std::uint64_t key, const at::Tensor& indices);

// Return (rows, columns) of float64, on the device of `row_indices`, (rows) of int64. Number (i, j) is that of index
// row_indices[i] * columns + j. Uniform: (k + 1/2) 2^-32 with integer 0 <= k < 2^32. Normal: mean 0 and variance 1, by
// the inverse distribution function of the uniform number; on CPUs with an error of at most 4e-7 (1 + |number|), about
// that of float32.
at::Tensor UniformNumbers(std::uint64_t seed, const at::Tensor& row_indices, std::int64_t columns);
at::Tensor NormalNumbers(std::uint64_t seed, const at::Tensor& row_indices, std::int64_t columns);

namespace internal {
// By LibTorch's operators, on any device.
at::Tensor UniformByOperators(std::uint64_t seed, const at::Tensor& row_indices, std::int64_t columns);
}  // namespace internal

}  // namespace plait::dropout

#endif  // PLAIT_PARALLEL_DROPOUT_RANDOM_NUMBERS_H_
