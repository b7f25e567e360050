// The elementwise part of a step's adjoint, and the layout of the gate gradients that it leaves.
#ifndef PLAIT_MODELS_GRU_KERNELS_GATE_GRADIENTS_H_
#define PLAIT_MODELS_GRU_KERNELS_GATE_GRADIENTS_H_

#include "models/gru/kernels/kernel_table.h"
#include "models/gru/kernels/state_share.h"
#include "models/gru/kernels/tiles.h"

namespace plait::gru {
namespace {

// Layout of gate gradients: [gate][block][row][places of lanes], followed, for pairs, by [gate][block][places of
// rows][lane].
template <typename T, typename P>
struct GateLayout {
  GateLayout(Index row_count, Index hidden) : rows(row_count), padded(PaddedHidden<T>(hidden)) {}

  Index UnitPlane() const { return padded * rows / P::kPair; }
  Index RowPlane() const { return padded * Places<P>(rows); }
  // The block that starts at `unit`, in the form that products along units, or rows, read.
  Index ByUnit(int gate, Index unit) const { return gate * UnitPlane() + unit * rows / P::kPair; }
  Index ByRow(int gate, Index unit) const {
    return (P::kPair > 1 ? 4 * UnitPlane() : 0) + gate * RowPlane() + unit * Places<P>(rows);
  }
  Index size() const { return P::kPair > 1 ? 4 * (UnitPlane() + RowPlane()) : 4 * RowPlane(); }

  Index rows;
  Index padded;
};

template <typename V>
struct GateVectors {
  V gate[4] = {V{}, V{}, V{}, V{}};  // r, z, n, hn
};

// Gate gradients of one row and block; writes lambda_in.
template <typename V>
PLAIT_INLINE GateVectors<V> GateGradientRow(const LayerGateGradients<Lane<V>>& p, Index unit, Index row) {
  using T = Lane<V>;
  constexpr Index kL = kLanes<V>;
  const Index count = Min(p.hidden - unit, kL);
  const Index at = row * p.hidden + unit;
  const T* saved = p.saved + 4 * (unit * p.rows + row * kL);
  const V r = Load<V>(saved);
  const V z = Load<V>(saved + kL);
  const V n = Load<V>(saved + 2 * kL);
  const V hn = Load<V>(saved + 3 * kL);
  const V h = Load<V>(p.state + at, count);
  const V lambda = Load<V>(p.lambda_out + at, count);
  const V one = Splat<V>(1);
  const auto [share, slope] = StateShare(p, z);
  const V gn = lambda * share * (one - n * n);
  const V ghn = gn * r;
  const V gz = lambda * (n - h) * slope * (z * (one - z));
  const V gr = ghn * hn * (one - r);  // gn hn r (1 - r)
  Store(p.lambda_in + at, count, lambda * (one - share));
  return {{gr, gz, gn, ghn}};
}

template <typename T, typename P, typename V>
PLAIT_INLINE void GateGradientBlock(const LayerGateGradients<T>& p, const GateLayout<T, P>& layout,
                                    Index unit) {
  constexpr Index kL = kLanes<V>;
  for (Index row = 0; row < p.rows; row += P::kPair) {
    const GateVectors<V> first = GateGradientRow<V>(p, unit, row);
    GateVectors<V> second;
    const bool pair = P::kPair > 1 && row + 1 < p.rows;
    if (pair) second = GateGradientRow<V>(p, unit, row + 1);
    for (int gate = 0; gate < 4; ++gate) {
      Store(p.gate_gradients + layout.ByRow(gate, unit) + row / P::kPair * kL,
            P::PlaceRows(first.gate[gate], second.gate[gate]));
      if constexpr (P::kPair > 1) {
        T* to = p.gate_gradients + layout.ByUnit(gate, unit) + row * kL / P::kPair;
        P::StorePairs(to, first.gate[gate]);
        if (pair) P::StorePairs(to + kL / P::kPair, second.gate[gate]);
      }
    }
  }
}

template <typename T, typename P>
void GateGradients(const LayerGateGradients<T>& p) {
  const GateLayout<T, P> layout(p.rows, p.hidden);
  ForEachBlock<T>(p.hidden,
                  [&](Index unit, auto tag) { GateGradientBlock<T, P, decltype(tag)>(p, layout, unit); });
}

template <typename T, typename P>
Index GateGradientsSize(Index rows, Index hidden) {
  return GateLayout<T, P>(rows, hidden).size();
}

template <typename T, typename P>
void BiasSums(Index rows, Index hidden, const T* gate_gradients, T* to) {
  const GateLayout<T, P> layout(rows, hidden);
  for (int gate = 0; gate < 4; ++gate) {
    ForEachBlock<T>(hidden, [&](Index unit, auto tag) {
      using V = decltype(tag);
      const T* gates = gate_gradients + layout.ByRow(gate, unit);
      V sum = V{};
      for (Index i = 0; i < Places<P>(rows); ++i) sum = P::AddRows(sum, Load<V>(gates + i * kLanes<V>));
      T* at = to + gate * hidden + unit;
      const Index count = Min(hidden - unit, kLanes<V>);
      Store(at, count, Load<V>(at, count) + sum);
    });
  }
}

}  // namespace
}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_KERNELS_GATE_GRADIENTS_H_
