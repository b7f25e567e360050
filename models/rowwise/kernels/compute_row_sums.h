// Sums of rows of row_functions.h for one family; a .cc includes the family's header (models/simd) first.
#ifndef PLAIT_MODELS_ROWWISE_KERNELS_COMPUTE_ROW_SUMS_H_
#define PLAIT_MODELS_ROWWISE_KERNELS_COMPUTE_ROW_SUMS_H_

#include "models/rowwise/kernels/compute_layer_norm.h"
#include "models/rowwise/kernels/row_functions.h"
#include "models/simd/tile.h"

namespace plait::rowwise {
namespace {

// A few vectors of columns at a time, so that their sums stay in registers.
template <typename Elements, typename T>
void SumRows(const RowSums<T>& s, Index first, Index last) {
  constexpr Index kVectors = 4;
  for (Index row = first; row < last; ++row) {
    for (Index column = 0; column < s.width; column += kVectors * kWide) {
      WideF32 sums[kVectors]{};
      for (Index a = s.first_addend[row]; a < s.first_addend[row + 1]; ++a) {
        const Index i = s.addends[a];
        const WideF32 scale = simd::Splat<WideF32>(s.scale == nullptr ? 1 : s.scale[i]);
#pragma GCC unroll 4
        for (Index v = 0; v < kVectors; ++v) {
          const Index j = column + v * kWide;
          if (j >= s.width) break;
          sums[v] = simd::Fma(scale, Elements::Load(s.rows + i * s.width + j, s.width - j), sums[v]);
        }
      }
      for (Index v = 0; v < kVectors && column + v * kWide < s.width; ++v) {
        const Index j = column + v * kWide;
        Elements::Store(s.out + row * s.width + j, s.width - j, sums[v]);
      }
    }
  }
}

template <typename Elements, typename T>
void SumRowsBackward(const RowSumsBackward<T>& s, Index first, Index last) {
  for (Index i = first; i < last; ++i) {
    const T *of_out = s.of_out + s.row_of[i] * s.width, *row = s.rows + i * s.width;
    const WideF32 scale = simd::Splat<WideF32>(s.scale[i]);
    WideF32 product{};
    for (Index j = 0; j < s.width; j += kWide) {
      const Index lanes = s.width - j;
      const WideF32 g = Elements::Load(of_out + j, lanes);
      product = simd::Fma(g, Elements::Load(row + j, lanes), product);
      Elements::Store(s.of_rows + i * s.width + j, lanes, scale * g);
    }
    s.of_scale[i] = Sum(product);
  }
}

}  // namespace
}  // namespace plait::rowwise

#endif  // PLAIT_MODELS_ROWWISE_KERNELS_COMPUTE_ROW_SUMS_H_
