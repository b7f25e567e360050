#include "parallel/dropout/random_numbers.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/special_ndtri.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/parallel_for.h"
#include "base/vector_loops.h"

namespace plait::dropout {
namespace {

// No number is 0 or 1.
constexpr double kUnit = 0x1p-32, kHalf = 0x1p-33;

// Numbers are always computed in full blocks, so that each results from the same instructions, whatever the tensor's
// size.
constexpr std::int64_t kBlock = 64;

PLAIT_VECTOR_CLONES void BitsOfBlock(std::uint64_t key, const std::uint64_t* __restrict index,
                                     std::uint32_t* __restrict bits) {
  for (std::int64_t i = 0; i < kBlock; ++i) bits[i] = RandomBits(key, index[i]);
}

void UniformOfBlock(const std::uint32_t* bits, double* numbers) {
  for (std::int64_t i = 0; i < kBlock; ++i) numbers[i] = bits[i] * kUnit + kHalf;
}

// Natural logarithm of a positive normal number.
__attribute__((always_inline)) inline float Log(float x) {
  constexpr std::int32_t kRootHalf = 0x3f3504f3;
  const std::int32_t shifted = __builtin_bit_cast(std::int32_t, x) - kRootHalf;
  const float m = __builtin_bit_cast(float, (shifted & 0x7fffff) + kRootHalf);  // in (sqrt(1/2), sqrt(2))
  const float s = (m - 1) / (m + 1), z = s * s;
  const float tail = z * (2.0f / 3 + z * (2.0f / 5 + z * (2.0f / 7 + z * (2.0f / 9))));
  return s * (2 + tail) + static_cast<float>(shifted >> 23) * 0.69314718f;
}

constexpr float kRootTwo = 1.41421356f, kCentre = 5;

// The inverse of the normal distribution function, by the inverse error function in float32 (Giles, "Approximating the
// erfinv function", 2011): error at most 4e-7 (1 + |number|). Valid where `depths` is below kCentre; Tail computes the
// others. `ends`: 1 - |x| with the sign of x = 2 u - 1.
PLAIT_VECTOR_CLONES void NormalOfBlock(const std::uint32_t* __restrict bits, float* __restrict ends,
                                       float* __restrict depths, float* __restrict numbers) {
  for (std::int64_t i = 0; i < kBlock; ++i) {
    // In integers: 1 - |x| from a rounded x would lose all digits near the ends.
    const auto twice = static_cast<std::int32_t>(bits[i] ^ 0x80000000u);
    const std::int32_t rest = twice < 0 ? twice ^ static_cast<std::int32_t>(0x80000000u) : 0x7fffffff ^ twice;
    const float to_end = (static_cast<float>(rest) + 0.5f) * 0x1p-31f;
    const float x = (static_cast<float>(twice) + 0.5f) * 0x1p-31f;
    ends[i] = twice < 0 ? -to_end : to_end;
    depths[i] = -Log(to_end * (2 - to_end));
    const float w = depths[i] - 2.5f;
    float p = 2.81022636e-08f;
    p = p * w + 3.43273939e-07f;
    p = p * w - 3.5233877e-06f;
    p = p * w - 4.39150654e-06f;
    p = p * w + 0.00021858087f;
    p = p * w - 0.00125372503f;
    p = p * w - 0.00417768164f;
    p = p * w + 0.246640727f;
    p = p * w + 1.50140941f;
    numbers[i] = p * x * kRootTwo;
  }
}

// Used for one number in 300.
double Tail(float end, float depth) {
  const float w = std::sqrt(depth) - 3;
  float p = -0.000200214257f;
  p = p * w + 0.000100950558f;
  p = p * w + 0.00134934322f;
  p = p * w - 0.00367342844f;
  p = p * w + 0.00573950773f;
  p = p * w - 0.0076224613f;
  p = p * w + 0.00943887047f;
  p = p * w + 1.00167406f;
  p = p * w + 2.83297682f;
  const double about = p * (1 - std::abs(end)) * kRootTwo;
  // A Newton step, because the polynomial is inaccurate far out.
  const double density = std::exp(-about * about / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  const double number =
      about + (std::erfc(about / std::numbers::sqrt2) - static_cast<double>(std::abs(end))) / (2 * density);
  return std::copysign(number, end);
}

void NormalOfBlock(const std::uint32_t* bits, double* numbers) {
  float ends[kBlock], depths[kBlock], normal[kBlock];
  NormalOfBlock(bits, ends, depths, normal);
  for (std::int64_t i = 0; i < kBlock; ++i)
    numbers[i] = depths[i] < kCentre ? normal[i] : Tail(ends[i], depths[i]);
}

// `of_block`: numbers from random bits.
template <typename Function>
at::Tensor NumbersOf(std::uint64_t seed, const at::Tensor& row_indices, std::int64_t columns,
                     const Function& of_block) {
  const std::int64_t rows = row_indices.numel();
  const at::Tensor indices = row_indices.to(at::kLong).contiguous();
  at::Tensor numbers = at::empty({rows, columns}, row_indices.options().dtype(at::kDouble));
  const std::int64_t* row = indices.const_data_ptr<std::int64_t>();
  double* to = numbers.mutable_data_ptr<double>();
  const std::uint64_t key = KeyOf(seed);
  const std::int64_t count = rows * columns;
  ParallelFor((count + kBlock - 1) / kBlock, kBlock, [&](std::int64_t begin, std::int64_t end) {
    std::uint64_t index[kBlock] = {};
    std::uint32_t bits[kBlock];
    double some[kBlock];
    std::int64_t i = begin * kBlock / columns, j = begin * kBlock % columns;
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t first = block * kBlock, here = std::min(kBlock, count - first);
      for (std::int64_t e = 0; e < here; ++e) {
        index[e] = static_cast<std::uint64_t>(row[i] * columns + j);
        if (++j == columns) ++i, j = 0;
      }
      BitsOfBlock(key, index, bits);
      of_block(bits, some);
      std::copy(some, some + here, to + first);
    }
  });
  return numbers;
}

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
  if (row_indices.is_meta())
    return at::empty({row_indices.numel(), columns}, row_indices.options().dtype(at::kDouble));
  if (!row_indices.is_cpu()) return internal::UniformByOperators(seed, row_indices, columns);
  return NumbersOf(seed, row_indices, columns, UniformOfBlock);
}

at::Tensor NormalNumbers(std::uint64_t seed, const at::Tensor& row_indices, std::int64_t columns) {
  if (!row_indices.is_cpu()) return at::special_ndtri(UniformNumbers(seed, row_indices, columns));
  return NumbersOf(seed, row_indices, columns,
                   [](const std::uint32_t* bits, double* numbers) { NormalOfBlock(bits, numbers); });
}

}  // namespace plait::dropout
