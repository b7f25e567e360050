// Norms of row_functions.h for one family; a .cc includes the family's header (models/simd) first.
#ifndef PLAIT_MODELS_ROWWISE_KERNELS_COMPUTE_LAYER_NORM_H_
#define PLAIT_MODELS_ROWWISE_KERNELS_COMPUTE_LAYER_NORM_H_

#include <cmath>

#include "models/rowwise/kernels/row_functions.h"
#include "models/simd/fold.h"
#include "models/simd/tile.h"

namespace plait::rowwise {
namespace {

using simd::Index;
using simd::WideF32;

constexpr Index kWide = simd::kLanes<WideF32>;

PLAIT_INLINE float Sum(WideF32 v) {
  return simd::Fold(v, [](WideF32 a, WideF32 b) { return a + b; });
}

// The first `lanes` lanes of v, zero in the others.
PLAIT_INLINE WideF32 Within(WideF32 v, Index lanes) {
  if (lanes >= kWide) return v;
  for (Index lane = lanes; lane < kWide; ++lane) v[lane] = 0;
  return v;
}

template <typename Elements, typename T>
void LayerNormRows(const LayerNormForward<T>& n, Index first, Index last) {
  const float count = static_cast<float>(n.width);
  for (Index i = first; i < last; ++i) {
    const T* x = n.x + i * n.width;
    T* y = n.y + i * n.width;
    WideF32 sum{}, squares{};
    for (Index j = 0; n.mean != nullptr && j < n.width; j += kWide) sum += Elements::Load(x + j, n.width - j);
    const float mean = Sum(sum) / count;
    const WideF32 shift = simd::Splat<WideF32>(mean);
    for (Index j = 0; j < n.width; j += kWide) {
      const WideF32 d = Within(Elements::Load(x + j, n.width - j) - shift, n.width - j);
      squares = simd::Fma(d, d, squares);
    }
    const float inverse = 1 / std::sqrt(Sum(squares) / count + n.epsilon);
    const WideF32 factor = simd::Splat<WideF32>(inverse);
    for (Index j = 0; j < n.width; j += kWide) {
      const Index lanes = n.width - j;
      const WideF32 hat = (Elements::Load(x + j, lanes) - shift) * factor;
      const WideF32 bias = n.bias == nullptr ? WideF32{} : Elements::Load(n.bias + j, lanes);
      Elements::Store(y + j, lanes, simd::Fma(hat, Elements::Load(n.weight + j, lanes), bias));
    }
    if (n.mean != nullptr) n.mean[i] = mean;
    n.inverse_deviation[i] = inverse;
  }
}

// Of row i.
template <typename T>
PLAIT_INLINE WideF32 ShiftOf(const LayerNormBackward<T>& n, Index i) {
  return simd::Splat<WideF32>(n.mean == nullptr ? 0 : n.mean[i]);
}

// With g = weight of_y and h = (x - mean) / deviation: (g - mean(g) - h mean(g h)) / deviation; without a mean
// (g - h mean(g h)) / deviation.
template <typename Elements, typename T>
void LayerNormOfX(const LayerNormBackward<T>& n, Index first, Index last) {
  const float count = static_cast<float>(n.width);
  for (Index i = first; i < last; ++i) {
    const T *x = n.x + i * n.width, *of_y = n.of_y + i * n.width;
    const WideF32 shift = ShiftOf(n, i), factor = simd::Splat<WideF32>(n.inverse_deviation[i]);
    WideF32 sum{}, projected{};
    for (Index j = 0; j < n.width; j += kWide) {
      const Index lanes = n.width - j;
      const WideF32 g = Elements::Load(n.weight + j, lanes) * Elements::Load(of_y + j, lanes);
      sum += g;
      projected = simd::Fma(g, (Elements::Load(x + j, lanes) - shift) * factor, projected);
    }
    const WideF32 mean = simd::Splat<WideF32>(n.mean == nullptr ? 0 : Sum(sum) / count);
    const WideF32 along = simd::Splat<WideF32>(Sum(projected) / count);
    for (Index j = 0; j < n.width; j += kWide) {
      const Index lanes = n.width - j;
      const WideF32 g = Elements::Load(n.weight + j, lanes) * Elements::Load(of_y + j, lanes);
      const WideF32 hat = (Elements::Load(x + j, lanes) - shift) * factor;
      Elements::Store(n.of_x + i * n.width + j, lanes, (g - mean - hat * along) * factor);
    }
  }
}

// Sums over rows, of four vectors of columns at a time.
template <typename Elements, typename T>
void LayerNormOfParameters(const LayerNormBackward<T>& n, Index first, Index last) {
  constexpr Index kVectors = kColumnsTogether / kWide;
  for (Index column = first; column < last; column += kColumnsTogether) {
    WideF32 of_weight[kVectors]{}, of_bias[kVectors]{};
    for (Index i = 0; i < n.rows; ++i) {
      const WideF32 shift = ShiftOf(n, i), factor = simd::Splat<WideF32>(n.inverse_deviation[i]);
#pragma GCC unroll 4
      for (Index v = 0; v < kVectors; ++v) {
        const Index j = column + v * kWide, lanes = last - j;
        if (lanes <= 0) break;
        const WideF32 of_y = Elements::Load(n.of_y + i * n.width + j, lanes);
        of_bias[v] += of_y;
        of_weight[v] =
            simd::Fma((Elements::Load(n.x + i * n.width + j, lanes) - shift) * factor, of_y, of_weight[v]);
      }
    }
    for (Index v = 0; v < kVectors && column + v * kWide < last; ++v) {
      const Index j = column + v * kWide;
      Elements::Store(n.of_weight + j, last - j, of_weight[v]);
      if (n.of_bias != nullptr) Elements::Store(n.of_bias + j, last - j, of_bias[v]);
    }
  }
}

}  // namespace
}  // namespace plait::rowwise

#endif  // PLAIT_MODELS_ROWWISE_KERNELS_COMPUTE_LAYER_NORM_H_
