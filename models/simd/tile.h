// A tile of a product's result, accumulated in registers.
#ifndef PLAIT_MODELS_SIMD_TILE_H_
#define PLAIT_MODELS_SIMD_TILE_H_

#include <cstdint>
#include <cstring>

#include "models/simd/vector_math.h"

namespace plait::simd {
namespace {

using Index = std::int64_t;

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
  // Some rows from each pointer: one offset for each row of the tile would be more than there are registers.
  constexpr int kTogether = 5, kPointers = (kRows + kTogether - 1) / kTogether;
  const Lane<V>* rows[kPointers];
#pragma GCC unroll 16
  for (int p = 0; p < kPointers; ++p) {
    rows[p] = a + p * kTogether * a_row;
    asm("" : "+r"(rows[p]));
  }
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
      Lane<V> value;  // copied: a pair of bfloat16 may begin at any of them
      std::memcpy(&value, rows[i / kTogether] + i % kTogether * a_row, sizeof(value));
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) tile.wide[i][j] = P::MultiplyAdd(value, wide[j], tile.wide[i][j]);
      if constexpr (kTail) tile.tail[i] = P::MultiplyAdd(value, tail, tile.tail[i]);
    }
#pragma GCC unroll 16
    for (int p = 0; p < kPointers; ++p) rows[p] += a_k;
    b += b_k;
  }
}

}  // namespace
}  // namespace plait::simd

#endif  // PLAIT_MODELS_SIMD_TILE_H_
