// The loops of all products: blocks of hidden units and tiles of rows.
#ifndef PLAIT_MODELS_GRU_KERNELS_TILES_H_
#define PLAIT_MODELS_GRU_KERNELS_TILES_H_

#include <cstdint>
#include <type_traits>

#include "models/gru/kernels/vectors.h"

namespace plait::gru {
namespace {

// Registers for the accumulators of a tile; the others hold a row of weights and a broadcast value.
constexpr int kAccumulators = simd::kRegisters * 3 / 4;
constexpr int kForwardRows = simd::kRegisters >= 32 ? 6 : 4;
constexpr int kPanelVectors = simd::kRegisters >= 32 ? 3 : 2;

constexpr Index Min(Index a, Index b) { return a < b ? a : b; }

// Places that `k` neighbours need.
template <typename P>
constexpr Index Places(Index k) {
  return (k + P::kPair - 1) / P::kPair;
}

template <typename T>
constexpr Index kWide = kLanes<typename Family<T>::Wide>;
template <typename T>
constexpr Index kHalf = kLanes<typename Family<T>::Half>;

// Lanes of the block or panel tail that holds `left` (> 0) units.
template <typename T>
constexpr Index BlockLanes(Index left) {
  return left <= kHalf<T> ? kHalf<T> : kWide<T>;
}

template <typename T>
Index PaddedHidden(Index hidden) {
  const Index tail = hidden % kWide<T>;
  return hidden - tail + (tail ? BlockLanes<T>(tail) : 0);
}

// Calls f(first unit, vector type tag) for each block of hidden units.
template <typename T, typename F>
PLAIT_INLINE void ForEachBlock(Index hidden, const F& f) {
  using Wide = typename Family<T>::Wide;
  using Half = typename Family<T>::Half;
  for (Index unit = 0; unit < hidden; unit += kWide<T>) {
    if (!std::is_same_v<Wide, Half> && hidden - unit <= kHalf<T>) {
      f(unit, Half{});
    } else {
      f(unit, Wide{});
    }
  }
}

// Calls f(first row, std::integral_constant<int, rows>) for tiles of kRows rows, then 4, 2, 1 for what is
// left.
template <int kRows, typename F>
PLAIT_INLINE void ForEachRowTile(Index rows, const F& f) {
  Index row = 0;
  for (; row + kRows <= rows; row += kRows) f(row, std::integral_constant<int, kRows>{});
  if constexpr (kRows > 4) {
    if (row + 4 <= rows) {
      f(row, std::integral_constant<int, 4>{});
      row += 4;
    }
  }
  if constexpr (kRows > 2) {
    if (row + 2 <= rows) {
      f(row, std::integral_constant<int, 2>{});
      row += 2;
    }
  }
  if (row < rows) f(row, std::integral_constant<int, 1>{});
  // Tiles of 8 or 4 rows leave at most 4 + 2 + 1 or 2 + 1 rows, tiles of 6 at most 4 + 1, so none are left here.
}

}  // namespace
}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_KERNELS_TILES_H_
