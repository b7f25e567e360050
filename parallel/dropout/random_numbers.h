// Random numbers that are a function of a seed and an index, not of a generator's state: the same for any
// split of work over ranks. The counter-based generator "squares" (Widynski, arXiv:2004.06278, four
// rounds).
//
//   // Elements (i, j) of a tensor whose rows have these indices in the tensor of the whole batch.
//   at::Tensor u = dropout::UniformNumbers(seed, row_indices, columns);
//   at::Tensor n = dropout::NormalNumbers(seed, row_indices, columns);
//
// Different purposes take different seeds (base::DeriveSeed). Local.
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

// The same for each of `indices` of int64, by LibTorch's integer operators, on any device; of int64.
at::Tensor RandomBits(std::uint64_t key, const at::Tensor& indices);

// (rows, columns) of float64, on the device of `row_indices` (rows) of int64. Number (i, j) is that of
// index row_indices[i] * columns + j. Uniform in (0, 1), a multiple of 2^-32 and a half; normal with mean 0
// and variance 1, by the inverse of the distribution function: on CPUs within 4e-7 (1 + |number|), as float32 has it.
at::Tensor UniformNumbers(std::uint64_t seed, const at::Tensor& row_indices, std::int64_t columns);
at::Tensor NormalNumbers(std::uint64_t seed, const at::Tensor& row_indices, std::int64_t columns);

namespace internal {
// By LibTorch's operators, on any device.
at::Tensor UniformByOperators(std::uint64_t seed, const at::Tensor& row_indices, std::int64_t columns);
}  // namespace internal

}  // namespace plait::dropout

#endif  // PLAIT_PARALLEL_DROPOUT_RANDOM_NUMBERS_H_
