#include "parallel/dropout/random_numbers.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/special_ndtri.h>

#include "base/parallel_for.h"

namespace plait::dropout {
namespace {

// No number is 0 or 1.
constexpr double kUnit = 0x1p-32, kHalf = 0x1p-33;

}  // namespace

at::Tensor RandomBits(std::uint64_t key, const at::Tensor& indices) {
  const auto step = static_cast<std::int64_t>(key);
  // 64-bit integers wrap around, as the generator wants it.
  const auto swap_halves = [](const at::Tensor& t) {
    return t.__rshift__(32).bitwise_and_(0xffffffffLL).bitwise_or_(t.__lshift__(32));
  };
  const at::Tensor y = indices * step, z = y + step;
  at::Tensor n = swap_halves(y * y + y);
  n = swap_halves(n * n + z);
  n = swap_halves(n * n + y);
  return (n * n + z).__rshift__(32).bitwise_and_(0xffffffffLL);
}

namespace internal {

at::Tensor UniformByOperators(std::uint64_t seed, const at::Tensor& row_indices, std::int64_t columns) {
  const at::Tensor indices = row_indices.unsqueeze(1) * columns + at::arange(columns, row_indices.options());
  return RandomBits(KeyOf(seed), indices).to(at::kDouble).mul_(kUnit).add_(kHalf);
}

}  // namespace internal

at::Tensor UniformNumbers(std::uint64_t seed, const at::Tensor& row_indices, std::int64_t columns) {
  const std::int64_t rows = row_indices.numel();
  const at::TensorOptions options = row_indices.options().dtype(at::kDouble);
  if (row_indices.is_meta()) return at::empty({rows, columns}, options);
  if (!row_indices.is_cpu()) return internal::UniformByOperators(seed, row_indices, columns);
  const at::Tensor indices = row_indices.to(at::kLong).contiguous();
  at::Tensor numbers = at::empty({rows, columns}, options);
  const std::int64_t* index = indices.const_data_ptr<std::int64_t>();
  double* to = numbers.mutable_data_ptr<double>();
  const std::uint64_t key = KeyOf(seed);
  ParallelFor(rows, columns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto first = static_cast<std::uint64_t>(index[i] * columns);
      for (std::int64_t j = 0; j < columns; ++j) {
        to[i * columns + j] = RandomBits(key, first + static_cast<std::uint64_t>(j)) * kUnit + kHalf;
      }
    }
  });
  return numbers;
}

at::Tensor NormalNumbers(std::uint64_t seed, const at::Tensor& row_indices, std::int64_t columns) {
  return at::special_ndtri(UniformNumbers(seed, row_indices, columns));
}

}  // namespace plait::dropout
