// Reduces the lanes of a vector to a scalar, in the same order for every vector.
#ifndef PLAIT_MODELS_SIMD_FOLD_H_
#define PLAIT_MODELS_SIMD_FOLD_H_

#include <cstddef>
#include <utility>

#include "models/simd/vector_math.h"

namespace plait::simd {
namespace {

// Rotates the lanes: lane i of the result is lane (i + kBy) mod kLanes of v.
template <int kBy, typename V, std::size_t... kLane>
PLAIT_INLINE V Rotated(V v, std::index_sequence<kLane...>) {
  return __builtin_shufflevector(v, v, ((kLane + kBy) % kLanes<V>)...);
}

// combine(a, b) works lane by lane and should be commutative.
template <typename V, typename Combine, int kBy = kLanes<V> / 2>
PLAIT_INLINE Lane<V> Fold(V v, const Combine& combine) {
  const V folded = combine(v, Rotated<kBy>(v, std::make_index_sequence<kLanes<V>>()));
  if constexpr (kBy == 1) {
    return folded[0];
  } else {
    return Fold<V, Combine, kBy / 2>(folded, combine);
  }
}

}  // namespace
}  // namespace plait::simd

#endif  // PLAIT_MODELS_SIMD_FOLD_H_
