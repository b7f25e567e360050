// The loops of all products: blocks of hidden units, tiles of rows, and the accumulation of a tile in
// registers.
#ifndef PLAIT_MODELS_GRU_KERNELS_TILES_H_
#define PLAIT_MODELS_GRU_KERNELS_TILES_H_

#include <cstdint>
#include <type_traits>

#include "models/gru/kernels/products.h"
#include "models/gru/kernels/vector_math.h"

namespace plait::gru {
namespace {

using Index = std::int64_t;

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
  // After 8 or 4 rows at most 4 + 2 + 1 or 2 + 1 are left; after 6 at most 4 + 1; so nothing is left here.
}

// A tile of accumulators: kRows rows by kVectors vectors and, if kTail, one half vector.
template <typename V, typename H, int kRows, int kVectors, bool kTail>
struct Tile {
  V wide[kRows][kVectors > 0 ? kVectors : 1];
  H tail[kRows];

  PLAIT_INLINE void Clear() {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) wide[i][j] = V{};
      tail[i] = H{};
    }
  }
};

// tile(i, :) += sum over k of a[i a_row + k a_k] * b[k b_k + :]. `last_count` is the number of valid columns
// in the last vector of b (all of them unless kPartial).
template <typename P, bool kPartial, typename V, typename H, int kRows, int kVectors, bool kTail>
PLAIT_INLINE void Accumulate(Tile<V, H, kRows, kVectors, kTail>& tile, Index k_count, const Lane<V>* a,
                             Index a_row, Index a_k, const Lane<V>* b, Index b_k, Index last_count) {
  for (Index k = 0; k < k_count; ++k) {
    V wide[kVectors > 0 ? kVectors : 1];
    H tail{};
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      const bool partial = kPartial && !kTail && j == kVectors - 1;
      wide[j] = partial ? Load<V>(b + j * kLanes<V>, last_count) : Load<V>(b + j * kLanes<V>);
    }
    if constexpr (kTail) {
      tail = kPartial ? Load<H>(b + kVectors * kLanes<V>, last_count) : Load<H>(b + kVectors * kLanes<V>);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const Lane<V> value = a[i * a_row];
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) tile.wide[i][j] = P::MultiplyAdd(value, wide[j], tile.wide[i][j]);
      if constexpr (kTail) tile.tail[i] = P::MultiplyAdd(value, tail, tile.tail[i]);
    }
    a += a_k;
    b += b_k;
  }
}

}  // namespace
}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_KERNELS_TILES_H_
