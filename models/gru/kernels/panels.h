// Panels of columns, for products whose result has any number of them.
#ifndef PLAIT_MODELS_GRU_KERNELS_PANELS_H_
#define PLAIT_MODELS_GRU_KERNELS_PANELS_H_

#include <type_traits>

#include "models/gru/kernels/tiles.h"

namespace plait::gru {
namespace {

// Columns are cut into panels of up to kPanelVectors vectors; the last one may end in a half vector.
template <typename T>
struct Panel {
  Index column = 0;
  Index count = 0;    // valid columns
  int vectors = 0;    // whole vectors
  bool tail = false;  // and a half one
  Index width() const { return vectors * kWide<T> + (tail ? kHalf<T> : 0); }
  // Valid columns of the last vector, whole or half.
  Index last_count() const { return count - (tail ? vectors : vectors - 1) * kWide<T>; }
};

// The panel that starts at `column`.
template <typename T>
Panel<T> PanelAt(Index column, Index columns) {
  const Index left = columns - column;
  const Index full = Min(left / kWide<T>, kPanelVectors);
  const Index rest = left - full * kWide<T>;
  Panel<T> panel{column, full * kWide<T>, static_cast<int>(full), false};
  if (rest == 0 || rest >= kWide<T>) return panel;
  const bool half = rest <= kHalf<T> && kHalf<T> < kWide<T>;
  if (!half && full == kPanelVectors) return panel;
  panel.count = left;
  panel.tail = half;
  if (!half) ++panel.vectors;
  return panel;
}

// Rows of a tile for a panel, so that the accumulators fit into the registers.
constexpr int TileRows(int vectors) {
  return kAccumulators / vectors >= 8 ? 8 : kAccumulators / vectors >= 6 ? 6 : 4;
}

// Calls f(whole vectors, half vector or not) with compile-time values for a panel.
template <typename T, typename F>
PLAIT_INLINE void WithPanelShape(const Panel<T>& panel, const F& f) {
  constexpr bool kHasHalf = kHalf<T> < kWide<T>;
  const auto with_tail = [&](auto vectors) {
    if constexpr (decltype(vectors)::value > 0) {
      if (!panel.tail) return f(vectors, std::false_type{});
    }
    if constexpr (kHasHalf) f(vectors, std::true_type{});
  };
  if (panel.vectors == 0) {
    if constexpr (kHasHalf) with_tail(std::integral_constant<int, 0>{});
  } else if (panel.vectors == 1) {
    with_tail(std::integral_constant<int, 1>{});
  } else if (panel.vectors == 2) {
    with_tail(std::integral_constant<int, 2>{});
  } else {
    if constexpr (kPanelVectors > 2) with_tail(std::integral_constant<int, 3>{});
  }
}

// to(i, :) += tile(i, :)
template <typename V, typename H, int kRows, int kVectors, bool kTail>
PLAIT_INLINE void AddTo(const Tile<V, H, kRows, kVectors, kTail>& tile, Lane<V>* to, Index stride,
                        Index last_count) {
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      Lane<V>* at = to + i * stride + j * kLanes<V>;
      const Index count = !kTail && j == kVectors - 1 ? last_count : kLanes<V>;
      Store(at, count, Load<V>(at, count) + tile.wide[i][j]);
    }
    if constexpr (kTail) {
      Lane<V>* at = to + i * stride + kVectors * kLanes<V>;
      Store(at, last_count, Load<H>(at, last_count) + tile.tail[i]);
    }
  }
}

}  // namespace
}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_KERNELS_PANELS_H_
