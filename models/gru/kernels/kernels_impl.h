// The kernels, once for all processor families; a .cc includes a simd_*.h, then this file. Everything lies in an
// unnamed namespace, so that no code made for one family can be linked into another.
#ifndef PLAIT_MODELS_GRU_KERNELS_KERNELS_IMPL_H_
#define PLAIT_MODELS_GRU_KERNELS_KERNELS_IMPL_H_

#include <cstdint>
#include <type_traits>

#include "models/gru/kernels/kernel_table.h"
#include "models/gru/kernels/products.h"
#include "models/gru/kernels/state_share.h"
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

// Calls f(first row, std::integral_constant<int, rows>) for tiles of kRows rows, then 4, 2, 1 for what is left.
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

// tile(i, :) += sum over k of a[i a_row + k a_k] * b[k b_k + :]. `last_count` is the number of valid columns in the
// last vector of b (all of them unless kPartial).
template <typename P, bool kPartial, typename V, typename H, int kRows, int kVectors, bool kTail>
PLAIT_INLINE void Accumulate(Tile<V, H, kRows, kVectors, kTail>& tile, Index k_count, const Lane<V>* a, Index a_row,
                             Index a_k, const Lane<V>* b, Index b_k, Index last_count) {
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

// ---- Forward ----

template <typename P, typename V, int kRows>
PLAIT_INLINE void AddInput(Tile<V, V, kRows, 3, false>& tile, const LayerStep<Lane<V>>& p, Index unit, Index row) {
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
  Accumulate<P, false>(tile, places, p.state_operand.data + row * p.state_operand.stride, p.state_operand.stride, 1,
                       p.hidden_weights + 3 * unit * places, 3 * kL, kL);

  T* saved = p.saved ? p.saved + 4 * (unit * p.rows + row * kL) : nullptr;
  for (int i = 0; i < kRows; ++i) {
    const V r = Sigmoid(tile.wide[i][0]);
    const V z = Sigmoid(tile.wide[i][1]);
    const V hn = tile.wide[i][2];
    const V n = Tanh(Fma(r, hn, input_n[i]));
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
    ForEachRowTile<kForwardRows>(
        p.rows, [&](Index row, auto rows) { StepTile<P, decltype(tag), decltype(rows)::value>(p, unit, row); });
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

// ---- Adjoint ----

// Where the gate gradients lie: [gate][block][row][places of lanes], and for pairs also [gate][block][places of
// rows][lane], behind the former.
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
PLAIT_INLINE void GateGradientBlock(const LayerGateGradients<T>& p, const GateLayout<T, P>& layout, Index unit) {
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
  ForEachBlock<T>(p.hidden, [&](Index unit, auto tag) { GateGradientBlock<T, P, decltype(tag)>(p, layout, unit); });
}

template <typename T, typename P>
Index GateGradientsSize(Index rows, Index hidden) {
  return GateLayout<T, P>(rows, hidden).size();
}

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

// Rows of a tile for a panel, so that the accumulators fit into the registers.
constexpr int TileRows(int vectors) { return kAccumulators / vectors >= 8 ? 8 : kAccumulators / vectors >= 6 ? 6 : 4; }

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
PLAIT_INLINE void AddTo(const Tile<V, H, kRows, kVectors, kTail>& tile, Lane<V>* to, Index stride, Index last_count) {
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
            AddTo(tile, p.to + (gate * p.hidden + unit + lane) * p.columns + column, p.columns, panel.last_count());
          });
        });
      }
    });
    column += panel.count;
  }
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

// ---- Packing and elementwise ----

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
        for (Index k = 0; k < places; ++k) at[3 * kL * k] = lane < count ? PlaceOf<P>(row, k, 1, k_count) : T(0);
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
  for (Index row = 0; row < rows; ++row) P::PlaceRow(from.data + row * from.stride, from.columns, to + row * places);
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
      Store(at + j, count, P::PlaceRows(Load<V>(first + j, count), second ? Load<V>(second + j, count) : V{}));
    });
  }
  return {to, from.columns, from.columns};
}

template <typename T, typename F>
void Map(const T* from, Index count, T* to, const F& f) {
  using V = typename Family<T>::Wide;
  for (Index i = 0; i < count; i += kWide<T>) Store(to + i, count - i, f(Load<V>(from + i, count - i)));
}

template <typename T>
void SigmoidArray(const T* from, Index count, T* to) {
  Map(from, count, to, [](auto v) { return Sigmoid(v); });
}

template <typename T>
void TanhArray(const T* from, Index count, T* to) {
  Map(from, count, to, [](auto v) { return Tanh(v); });
}

template <typename T, typename P>
constexpr KernelTable<T> MakeTable(const char* name) {
  KernelTable<T> table{};
  table.name = name;
  table.bfloat16 = P::kBFloat16;
  table.padded_hidden = &PaddedHidden<T>;
  table.packed_columns_size = &PackedColumnsSize<T, P>;
  table.gate_gradients_size = &GateGradientsSize<T, P>;
  table.pack_weights = &PackWeights<T, P>;
  table.pack_bias = &PackBias<T>;
  table.pack_columns = &PackColumns<T, P>;
  table.input_gates = &InputGates<T, P>;
  table.step = &Step<T, P>;
  table.gate_gradients = &GateGradients<T, P>;
  table.gate_product = &GateProductOf<T, P>;
  table.outer_product = &OuterProductOf<T, P>;
  table.bias_sums = &BiasSums<T, P>;
  table.sigmoid = &SigmoidArray<T>;
  table.tanh = &TanhArray<T>;
  table.operand = &MakeOperand<T, P>;
  table.outer_operand = &MakeOuterOperand<T, P>;
  return table;
}

}  // namespace
}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_KERNELS_KERNELS_IMPL_H_
