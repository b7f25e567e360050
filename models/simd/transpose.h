// Transposes a square of lanes in registers.
#ifndef PLAIT_MODELS_SIMD_TRANSPOSE_H_
#define PLAIT_MODELS_SIMD_TRANSPOSE_H_

#include <cstddef>
#include <utility>

#include "models/simd/vector_math.h"

namespace plait::simd {
namespace {

// Lanes of two rows: the first blocks of both, and the second blocks of both.
template <int kBlock, typename V, std::size_t... kLane>
PLAIT_INLINE V FirstBlocks(V a, V b, std::index_sequence<kLane...>) {
  return __builtin_shufflevector(a, b, ((kLane & kBlock) != 0 ? kLanes<V> + kLane - kBlock : kLane)...);
}
template <int kBlock, typename V, std::size_t... kLane>
PLAIT_INLINE V SecondBlocks(V a, V b, std::index_sequence<kLane...>) {
  return __builtin_shufflevector(a, b, ((kLane & kBlock) != 0 ? kLanes<V> + kLane : kLane + kBlock)...);
}

// Exchanges the off-diagonal blocks of kBlock lanes between rows i and i + kBlock.
template <int kBlock, typename V>
PLAIT_INLINE void ExchangeBlocks(V (&rows)[kLanes<V>]) {
  constexpr auto kEach = std::make_index_sequence<kLanes<V>>();
#pragma GCC unroll 16
  for (int i = 0; i < kLanes<V>; ++i) {
    if ((i & kBlock) != 0) continue;
    const V a = rows[i], b = rows[i + kBlock];
    rows[i] = FirstBlocks<kBlock>(a, b, kEach);
    rows[i + kBlock] = SecondBlocks<kBlock>(a, b, kEach);
  }
}

// rows[i][j] <-> rows[j][i]
template <typename V>
PLAIT_INLINE void Transpose(V (&rows)[kLanes<V>]) {
  ExchangeBlocks<1>(rows);
  if constexpr (kLanes < V >> 2) ExchangeBlocks<2>(rows);
  if constexpr (kLanes < V >> 4) ExchangeBlocks<4>(rows);
  if constexpr (kLanes < V >> 8) ExchangeBlocks<8>(rows);
}

}  // namespace
}  // namespace plait::simd

#endif  // PLAIT_MODELS_SIMD_TRANSPOSE_H_
