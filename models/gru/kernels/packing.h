// Weights, biases and operands in the layouts that the products read.
#ifndef PLAIT_MODELS_GRU_KERNELS_PACKING_H_
#define PLAIT_MODELS_GRU_KERNELS_PACKING_H_

#include "models/gru/kernels/kernel_table.h"
#include "models/gru/kernels/panels.h"
#include "models/gru/kernels/tiles.h"

namespace plait::gru {
namespace {

// The place of neighbours first, first + stride of an array with `count` entries; zero beyond.
template <typename P, typename T>
PLAIT_INLINE T PlaceOf(const T* from, Index place, Index stride, Index count) {
  const Index k = place * P::kPair;
  return P::Place(from[k * stride], P::kPair > 1 && k + 1 < count ? from[(k + 1) * stride] : T(0));
}

template <typename T, typename P>
void PackWeights(const T* weight, Index hidden, Index k_count, T* to) {
  const Index places = Places<P>(k_count);
  ForEachBlock<T>(hidden, [&](Index unit, auto tag) {
    constexpr Index kL = kLanes<decltype(tag)>;
    const Index count = Min(hidden - unit, kL);
    T* block = to + 3 * unit * places;
    for (Index gate = 0; gate < 3; ++gate) {
      for (Index lane = 0; lane < kL; ++lane) {
        const T* row = weight + (gate * hidden + unit + lane) * k_count;
        T* at = block + gate * kL + lane;
        for (Index k = 0; k < places; ++k)
          at[3 * kL * k] = lane < count ? PlaceOf<P>(row, k, 1, k_count) : T(0);
      }
    }
  });
}

template <typename T>
void PackBias(const T* bias_ih, const T* bias_hh, Index hidden, T* to) {
  ForEachBlock<T>(hidden, [&](Index unit, auto tag) {
    constexpr Index kL = kLanes<decltype(tag)>;
    T* block = to + 4 * unit;
    for (Index lane = 0; lane < kL; ++lane) {
      const bool valid = unit + lane < hidden;
      const Index at = valid ? unit + lane : 0;
      block[lane] = valid ? bias_ih[at] + bias_hh[at] : T(0);
      block[kL + lane] = valid ? bias_ih[hidden + at] + bias_hh[hidden + at] : T(0);
      block[2 * kL + lane] = valid ? bias_ih[2 * hidden + at] : T(0);
      block[3 * kL + lane] = valid ? bias_hh[2 * hidden + at] : T(0);
    }
  });
}

template <typename T, typename P>
Index PackedColumnsSize(Index hidden, Index columns) {
  Index size = 0;
  for (Index column = 0; column < columns;) {
    const Panel<T> panel = PanelAt<T>(column, columns);
    size += 3 * Places<P>(hidden) * panel.width();
    column += panel.count;
  }
  return size;
}

template <typename T, typename P>
void PackColumns(const T* weight, Index hidden, Index columns, T* to) {
  const Index places = Places<P>(hidden);
  for (Index column = 0; column < columns;) {
    const Panel<T> panel = PanelAt<T>(column, columns);
    for (Index k = 0; k < 3 * places; ++k, to += panel.width()) {
      const T* from = weight + k / places * hidden * columns + column;
      for (Index j = 0; j < panel.width(); ++j) {
        to[j] = j < panel.count ? PlaceOf<P>(from + j, k % places, columns, hidden) : T(0);
      }
    }
    column += panel.count;
  }
}

template <typename T, typename P>
Rows<T> MakeOperand(Index rows, const Rows<T>& from, T* to) {
  const Index places = Places<P>(from.columns);
  for (Index row = 0; row < rows; ++row)
    P::PlaceRow(from.data + row * from.stride, from.columns, to + row * places);
  return {to, places, from.columns};
}

template <typename T, typename P>
Rows<T> MakeOuterOperand(Index rows, const Rows<T>& from, T* to) {
  for (Index row = 0; row < rows; row += P::kPair) {
    const T* first = from.data + row * from.stride;
    const T* second = row + 1 < rows ? first + from.stride : nullptr;  // beyond the last row: zero
    T* at = to + row / P::kPair * from.columns;
    ForEachBlock<T>(from.columns, [&](Index j, auto tag) {
      using V = decltype(tag);
      const Index count = Min(from.columns - j, kLanes<V>);
      Store(at + j, count,
            P::PlaceRows(Load<V>(first + j, count), second ? Load<V>(second + j, count) : V{}));
    });
  }
  return {to, from.columns, from.columns};
}

}  // namespace
}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_KERNELS_PACKING_H_
