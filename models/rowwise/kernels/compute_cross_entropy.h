// Cross entropies of row_functions.h for one family; a .cc includes the family's header (models/simd) first.
#ifndef PLAIT_MODELS_ROWWISE_KERNELS_COMPUTE_CROSS_ENTROPY_H_
#define PLAIT_MODELS_ROWWISE_KERNELS_COMPUTE_CROSS_ENTROPY_H_

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "models/rowwise/kernels/compute_layer_norm.h"
#include "models/rowwise/kernels/row_functions.h"
#include "models/simd/products.h"
#include "models/simd/tile.h"

namespace plait::rowwise {
namespace {

// Several vectors of a row at a time, for instruction-level parallelism.
constexpr Index kVectorsTogether = 4;
constexpr Index kTogether = kVectorsTogether * kWide;

// exp(y) for y <= 0; 0 where float32 has no normal number. A NaN stays one.
PLAIT_INLINE WideF32 ExpBelowZero(WideF32 y) {
  const WideF32 least = simd::Splat<WideF32>(-simd::ExpConstants<float>::kLargest);
  const auto vanishes = y < least;
  y = vanishes ? least : y;
  const simd::ScaledExp<WideF32> e = simd::Exp(y);
  return vanishes ? WideF32{} : simd::Fma(e.scale, e.p, e.scale);
}

template <int... kLane>
PLAIT_INLINE simd::IntegerLanes<WideF32> LaneNumbers(std::integer_sequence<int, kLane...>) {
  constexpr int kNumbers[] = {kLane...};
  simd::IntegerLanes<WideF32> lanes;
  std::memcpy(&lanes, kNumbers, sizeof(lanes));
  return lanes;
}

// Numbers [j, j + kWide) of a row; -inf behind its end.
template <typename Elements, typename T>
PLAIT_INLINE WideF32 LogitsOf(const T* row, Index width, Index j) {
  const auto numbers = LaneNumbers(std::make_integer_sequence<int, kWide>());
  const WideF32 v = Elements::Load(row + j, width - j);
  if (width - j >= kWide) return v;
  return numbers < static_cast<int>(width - j)
             ? v
             : simd::Splat<WideF32>(-std::numeric_limits<float>::infinity());
}

// May skip a NaN: the sum of exponentials propagates it.
template <typename Elements, typename T>
float LargestOf(const T* row, Index width) {
  const auto larger = [](WideF32 a, WideF32 b) { return a > b ? a : b; };
  WideF32 largest[kVectorsTogether];
  for (WideF32& v : largest) v = simd::Splat<WideF32>(-std::numeric_limits<float>::infinity());
  Index j = 0;
  for (; j + kTogether <= width; j += kTogether) {
#pragma GCC unroll 4
    for (Index v = 0; v < kVectorsTogether; ++v)
      largest[v] = larger(Elements::Load(row + j + v * kWide, kWide), largest[v]);
  }
  for (; j < width; j += kWide) largest[0] = larger(LogitsOf<Elements>(row, width, j), largest[0]);
  return simd::Fold(larger(larger(largest[0], largest[1]), larger(largest[2], largest[3])), larger);
}

template <typename Elements, typename T>
float SumOfExponentials(const T* row, Index width, float largest) {
  const WideF32 shift = simd::Splat<WideF32>(largest);
  WideF32 sums[kVectorsTogether]{};
  Index j = 0;
  for (; j + kTogether <= width; j += kTogether) {
#pragma GCC unroll 4
    for (Index v = 0; v < kVectorsTogether; ++v)
      sums[v] += ExpBelowZero(Elements::Load(row + j + v * kWide, kWide) - shift);
  }
  for (; j < width; j += kWide) sums[0] += ExpBelowZero(LogitsOf<Elements>(row, width, j) - shift);
  return Sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

template <typename T>
float ValueOf(const T& x) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return x;
  } else {
    return simd::FromBits(static_cast<std::uint32_t>(x.bits) << 16);
  }
}

template <typename Elements, typename T>
void CrossEntropyRows(const CrossEntropyForward<T>& pass, Index first, Index last) {
  for (Index i = first; i < last; ++i) {
    const T* row = pass.logits + i * pass.width;
    const float largest = LargestOf<Elements>(row, pass.width);
    const float sum = SumOfExponentials<Elements>(row, pass.width, largest);
    pass.losses[i] = std::log(sum) - (ValueOf(row[pass.targets[i]]) - largest);
    pass.largest[i] = largest;
    pass.inverse_sum[i] = 1 / sum;
  }
}

template <typename Elements, typename T>
void CrossEntropyOfLogits(const CrossEntropyBackward<T>& pass, Index first, Index last) {
  for (Index i = first; i < last; ++i) {
    const T* row = pass.logits + i * pass.width;
    T* to = pass.of_logits + i * pass.width;
    const WideF32 shift = simd::Splat<WideF32>(pass.largest[i]);
    const WideF32 factor = simd::Splat<WideF32>(pass.inverse_sum[i] * pass.scale);
    for (Index j = 0; j < pass.width; j += kWide) {
      const Index lanes = pass.width - j;
      Elements::Store(to + j, lanes, ExpBelowZero(Elements::Load(row + j, lanes) - shift) * factor);
    }
    // Recompute the target's vector: 1 is subtracted before the result is rounded.
    const Index target = pass.targets[i], begin = target / kWide * kWide, lanes = pass.width - begin;
    WideF32 of_row = ExpBelowZero(Elements::Load(row + begin, lanes) - shift);
    of_row = of_row * simd::Splat<WideF32>(pass.inverse_sum[i]);
    of_row[target - begin] -= 1;
    Elements::Store(to + begin, lanes, of_row * simd::Splat<WideF32>(pass.scale));
  }
}

}  // namespace
}  // namespace plait::rowwise

#endif  // PLAIT_MODELS_ROWWISE_KERNELS_COMPUTE_CROSS_ENTROPY_H_
