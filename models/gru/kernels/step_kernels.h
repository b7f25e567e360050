// A layer's step: products and activations in one pass over each tile.
#ifndef PLAIT_MODELS_GRU_KERNELS_STEP_KERNELS_H_
#define PLAIT_MODELS_GRU_KERNELS_STEP_KERNELS_H_

#include "models/gru/kernels/kernel_table.h"
#include "models/gru/kernels/state_share.h"
#include "models/gru/kernels/tiles.h"

namespace plait::gru {
namespace {

template <typename P, typename V, int kRows>
PLAIT_INLINE void AddInput(Tile<V, V, kRows, 3, false>& tile, const LayerStep<Lane<V>>& p, Index unit,
                           Index row) {
  const Index places = Places<P>(p.input.columns);
  Accumulate<P, false>(tile, places, p.input.data + row * p.input.stride, p.input.stride, 1,
                       p.input_weights + 3 * unit * places, 3 * kLanes<V>, kLanes<V>);
}

// The products and the activations of `kRows` rows by one block of units.
template <typename P, typename V, int kRows>
PLAIT_INLINE void StepTile(const LayerStep<Lane<V>>& p, Index unit, Index row) {
  using T = Lane<V>;
  constexpr Index kL = kLanes<V>;
  const Index count = Min(p.hidden - unit, kL);
  const T* bias = p.bias + 4 * unit;
  Tile<V, V, kRows, 3, false> tile;  // r, z, n
  if (p.input_gates) {
    const T* gates = p.input_gates + 3 * (unit * p.rows + row * kL);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < 3; ++j) tile.wide[i][j] = Load<V>(gates + (3 * i + j) * kL);
    }
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < 3; ++j) tile.wide[i][j] = Load<V>(bias + j * kL);
    }
    AddInput<P>(tile, p, unit, row);
  }
  V input_n[kRows];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    input_n[i] = tile.wide[i][2];
    tile.wide[i][2] = Load<V>(bias + 3 * kL);
  }
  const Index places = Places<P>(p.hidden);
  Accumulate<P, false>(tile, places, p.state_operand.data + row * p.state_operand.stride,
                       p.state_operand.stride, 1, p.hidden_weights + 3 * unit * places, 3 * kL, kL);

  T* saved = p.saved ? p.saved + 4 * (unit * p.rows + row * kL) : nullptr;
  for (int i = 0; i < kRows; ++i) {
    const V r = simd::Sigmoid(tile.wide[i][0]);
    const V z = simd::Sigmoid(tile.wide[i][1]);
    const V hn = tile.wide[i][2];
    const V n = simd::Tanh(Fma(r, hn, input_n[i]));
    const V share = StateShare(p, z).share;
    const Index at = (row + i) * p.hidden + unit;
    const V h = Load<V>(p.state + at, count);
    Store(p.new_state + at, count, Fma(share, n - h, h));
    if (saved) {
      Store(saved, r);
      Store(saved + kL, z);
      Store(saved + 2 * kL, n);
      Store(saved + 3 * kL, hn);
      saved += 4 * kL;
    }
  }
}

template <typename T, typename P>
void Step(const LayerStep<T>& p) {
  ForEachBlock<T>(p.hidden, [&](Index unit, auto tag) {
    ForEachRowTile<kForwardRows>(p.rows, [&](Index row, auto rows) {
      StepTile<P, decltype(tag), decltype(rows)::value>(p, unit, row);
    });
  });
}

template <typename T, typename P>
void InputGates(const LayerStep<T>& p, T* gates) {
  ForEachBlock<T>(p.hidden, [&](Index unit, auto tag) {
    using V = decltype(tag);
    constexpr Index kL = kLanes<V>;
    ForEachRowTile<kForwardRows>(p.rows, [&](Index row, auto rows) {
      constexpr int kRows = decltype(rows)::value;
      Tile<V, V, kRows, 3, false> tile;
      for (int i = 0; i < kRows; ++i) {
        for (int j = 0; j < 3; ++j) tile.wide[i][j] = Load<V>(p.bias + 4 * unit + j * kL);
      }
      AddInput<P>(tile, p, unit, row);
      T* to = gates + 3 * (unit * p.rows + row * kL);
      for (int i = 0; i < kRows; ++i) {
        for (int j = 0; j < 3; ++j) Store(to + (3 * i + j) * kL, tile.wide[i][j]);
      }
    });
  });
}

}  // namespace
}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_KERNELS_STEP_KERNELS_H_
