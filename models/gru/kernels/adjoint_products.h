// The products of gate gradients: with the weights (for lambda) and with states or inputs (for weight
// gradients).
#ifndef PLAIT_MODELS_GRU_KERNELS_ADJOINT_PRODUCTS_H_
#define PLAIT_MODELS_GRU_KERNELS_ADJOINT_PRODUCTS_H_

#include <type_traits>

#include "models/gru/kernels/gate_gradients.h"
#include "models/gru/kernels/kernel_table.h"
#include "models/gru/kernels/panels.h"

namespace plait::gru {
namespace {

constexpr int GatePlane(int gate, bool hidden_path) { return gate == 2 && hidden_path ? 3 : gate; }

template <typename T, typename P>
void GateProductOf(const GateProduct<T>& p) {
  using V = typename Family<T>::Wide;
  using H = typename Family<T>::Half;
  const GateLayout<T, P> layout(p.rows, p.hidden);
  const Index gate_places = Places<P>(p.hidden);
  const T* weights = p.packed_columns;
  for (Index column = 0; column < p.columns;) {
    const Panel<T> panel = PanelAt<T>(column, p.columns);
    WithPanelShape(panel, [&](auto vectors, auto tail) {
      constexpr int kVectors = decltype(vectors)::value;
      constexpr bool kTail = decltype(tail)::value;
      constexpr int kWidth = kVectors * kWide<T> + (kTail ? kHalf<T> : 0);
      ForEachRowTile<TileRows(kVectors + kTail)>(p.rows, [&](Index row, auto rows) {
        Tile<V, H, decltype(rows)::value, kVectors, kTail> tile;
        tile.Clear();
        for (int gate = 0; gate < 3; ++gate) {
          const int plane = GatePlane(gate, p.hidden_path);
          const T* b = weights + gate * gate_places * kWidth;
          ForEachBlock<T>(p.hidden, [&](Index unit, auto tag) {
            constexpr Index kL = kLanes<decltype(tag)> / P::kPair;
            Accumulate<P, false>(tile, Min(gate_places - unit / P::kPair, kL),
                                 p.gate_gradients + layout.ByUnit(plane, unit) + row * kL, kL, 1,
                                 b + unit / P::kPair * kWidth, kWidth, 0);
          });
        }
        AddTo(tile, p.to + row * p.to_stride + column, p.to_stride, panel.last_count());
      });
    });
    weights += 3 * gate_places * panel.width();
    column += panel.count;
  }
}

template <typename T, typename P>
void OuterProductOf(const OuterProduct<T>& p) {
  using V = typename Family<T>::Wide;
  using H = typename Family<T>::Half;
  const GateLayout<T, P> layout(p.rows, p.hidden);
  const Index places = Places<P>(p.rows);
  for (Index column = 0; column < p.columns;) {
    const Panel<T> panel = PanelAt<T>(column, p.columns);
    WithPanelShape(panel, [&](auto vectors, auto tail) {
      constexpr int kVectors = decltype(vectors)::value;
      constexpr bool kTail = decltype(tail)::value;
      for (int gate = 0; gate < 3; ++gate) {
        ForEachBlock<T>(p.hidden, [&](Index unit, auto tag) {
          constexpr Index kL = kLanes<decltype(tag)>;
          const Index offset = layout.ByRow(GatePlane(gate, p.hidden_path), unit);
          ForEachRowTile<TileRows(kVectors + kTail)>(Min(p.hidden - unit, kL), [&](Index lane, auto rows) {
            Tile<V, H, decltype(rows)::value, kVectors, kTail> tile;
            tile.Clear();
            for (Index t = 0; t < p.term_count; ++t) {
              const T* a = p.terms[t].gate_gradients + offset + lane;
              const T* b = p.terms[t].operand + column;
              if (panel.count == panel.width()) {
                Accumulate<P, false>(tile, places, a, 1, kL, b, p.operand_stride, 0);
              } else {
                Accumulate<P, true>(tile, places, a, 1, kL, b, p.operand_stride, panel.last_count());
              }
            }
            AddTo(tile, p.to + (gate * p.hidden + unit + lane) * p.columns + column, p.columns,
                  panel.last_count());
          });
        });
      }
    });
    column += panel.count;
  }
}

}  // namespace
}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_KERNELS_ADJOINT_PRODUCTS_H_
