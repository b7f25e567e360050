// Operands in the layout that tiles read: the right one packed in panels of columns, the left one in place if
// possible, else copied with pairs of neighbours in k side by side. `Elements` is one of
// models/simd/*_elements.h.
#ifndef PLAIT_MODELS_LINEAR_KERNELS_OPERANDS_H_
#define PLAIT_MODELS_LINEAR_KERNELS_OPERANDS_H_

#include <cstdlib>
#include <memory>

#include "models/linear/kernels/product.h"
#include "models/simd/products.h"
#include "models/simd/tile.h"
#include "models/simd/transpose.h"

namespace plait::linear {
namespace {

using simd::Index;
using simd::Lane;
using simd::WideF32;

constexpr Index kWide = simd::kLanes<WideF32>;

constexpr Index Least(Index a, Index b) { return a < b ? a : b; }

// Memory for `count` floats, aligned to 64 bytes.
struct FreeRoom {
  void operator()(float* room) const { std::free(room); }
};
using Room = std::unique_ptr<float[], FreeRoom>;
inline Room RoomFor(Index count) {
  const Index bytes = (count * static_cast<Index>(sizeof(float)) + 63) / 64 * 64;
  return Room(static_cast<float*>(std::aligned_alloc(64, static_cast<std::size_t>(bytes))));
}

// Number of places for `inner` elements of k.
template <typename Elements>
constexpr Index Places(Index inner) {
  return (inner + Elements::Products::kPair - 1) / Elements::Products::kPair;
}

// P below is a Product of Elements::Type. Packs places [first, last) of k and columns [column, column + count) into a
// panel (places, width), where `width` is a multiple of a vector. Zero beyond the last column and the last k.
// kWhole: `count` equals `width`.
template <typename Elements, bool kWhole, typename P>
void PackColumnsTogether(const P& p, Index first, Index last, Index column, Index count, Index width,
                         float* to) {
  constexpr Index kPair = Elements::Products::kPair;
  for (Index place = first; place < last; ++place) {
    const auto* row = p.right.data + place * kPair * p.right.row_stride + column;
    const auto* next = place * kPair + kPair - 1 < p.inner ? row + (kPair - 1) * p.right.row_stride : nullptr;
    for (Index j = 0; j < width; j += kWide, to += kWide) {
      const Index lanes = kWhole ? kWide : Least(count - j, kWide);
      simd::Store(to, Elements::PlaceRows(row + j, next == nullptr ? nullptr : next + j, lanes));
    }
  }
}

// Packs up to kWide places of up to kWide columns, `numbers` elements of k each, and transposes them into rows of `to`.
// kWhole: a full square.
template <typename Elements, bool kWhole, typename T>
PLAIT_INLINE void PackSquare(const T* from, Index stride, Index columns, Index numbers, float* to,
                             Index width, Index places) {
  WideF32 rows[kWide];
#pragma GCC unroll 16
  for (Index lane = 0; lane < kWide; ++lane) {
    rows[lane] = kWhole ? Elements::LoadPlaces(from + lane * stride, kWide * Elements::Products::kPair)
                 : lane < columns ? Elements::LoadPlaces(from + lane * stride, numbers)
                                  : WideF32{};
  }
  simd::Transpose(rows);
#pragma GCC unroll 16
  for (Index lane = 0; lane < kWide; ++lane) {
    if (kWhole || lane < places) simd::Store(to + lane * width, rows[lane]);
  }
}

template <typename Elements, typename P>
void PackColumnsApart(const P& p, Index first, Index last, Index column, Index count, Index width,
                      float* to) {
  constexpr Index kPair = Elements::Products::kPair;
  const Index stride = p.right.column_stride;
  for (Index j = 0; j < width; j += kWide) {
    const auto* columns = p.right.data + (column + j) * stride;
    for (Index place = first; place < last; place += kWide) {
      float* at = to + (place - first) * width + j;
      const Index numbers = p.inner - place * kPair, places = Least(kWide, last - place);
      if (j + kWide <= count && places == kWide && numbers >= kWide * kPair) {
        PackSquare<Elements, true>(columns + place * kPair, stride, kWide, numbers, at, width, places);
      } else {
        PackSquare<Elements, false>(columns + place * kPair, stride, count - j, numbers, at, width, places);
      }
    }
  }
}

template <typename Elements, typename P>
void PackPanel(const P& p, Index first, Index last, Index column, Index count, Index width, float* to) {
  if (p.right.column_stride != 1) {
    PackColumnsApart<Elements>(p, first, last, column, count, width, to);
  } else if (count == width) {
    PackColumnsTogether<Elements, true>(p, first, last, column, count, width, to);
  } else {
    PackColumnsTogether<Elements, false>(p, first, last, column, count, width, to);
  }
}

// Prefetches the memory that the next panel is packed from into the second-level cache, line by line, while tiles pass
// over the current panel: weights of many experts come from memory, and packing alone would wait for them.
class PanelAhead {
 public:
  PanelAhead() = default;
  // Elements [first, last) of k, columns [column, column + count).
  template <typename P>
  PanelAhead(const P& p, Index first, Index last, Index column, Index count) {
    constexpr Index kNumber = sizeof(*p.right.data);
    const bool together = p.right.column_stride == 1;
    from_ = reinterpret_cast<const char*>(p.right.data + first * p.right.row_stride +
                                          column * p.right.column_stride);
    stride_ = kNumber * (together ? p.right.row_stride : p.right.column_stride);
    runs_ = together ? last - first : count;
    lines_ = (kNumber * (together ? count : last - first) + kLine - 1) / kLine;
  }
  Index lines() const { return runs_ * lines_; }
  void Fetch(Index count) {
    for (; count > 0 && runs_ > 0; --count) {
      __builtin_prefetch(from_ + line_ * kLine, 0, 2);
      if (++line_ < lines_) continue;
      line_ = 0;
      --runs_;
      from_ += stride_;
    }
  }

 private:
  static constexpr Index kLine = 64;
  const char* from_ = nullptr;
  Index stride_ = 0, runs_ = 0, lines_ = 0, line_ = 0;
};

// Place (i, k) is data[i * row_stride + k * place_stride].
struct LeftPlaces {
  const float* data = nullptr;
  Index row_stride = 0;
  Index place_stride = 1;
};

constexpr Index WholeVectors(Index count) { return (count + kWide - 1) / kWide * kWide; }

// Scratch memory, in floats, that LeftOf needs.
template <typename Elements, typename P>
Index LeftRoom(const P& p) {
  constexpr Index kPair = Elements::Products::kPair;
  if (kPair == 1) return 0;
  if (p.left.column_stride != 1) return Places<Elements>(p.inner) * WholeVectors(p.rows);
  if (p.inner % kPair == 0 && p.left.row_stride % kPair == 0) return 0;
  return p.rows * WholeVectors(Places<Elements>(p.inner));
}

// For a left operand with contiguous columns: pairs up neighbours in k; for each place of k, all rows.
template <typename Elements, typename P>
LeftPlaces PairedRows(const P& p, float* room) {
  const Index places = Places<Elements>(p.inner), padded = WholeVectors(p.rows);
  for (Index place = 0; place < places; ++place) {
    const auto* row = p.left.data + 2 * place * p.left.column_stride;
    const auto* next = 2 * place + 1 < p.inner ? row + p.left.column_stride : nullptr;
    for (Index i = 0; i < p.rows; i += kWide) {
      simd::Store(
          room + place * padded + i,
          Elements::PlaceRows(row + i, next == nullptr ? nullptr : next + i, Least(p.rows - i, kWide)));
    }
  }
  return {room, 1, padded};
}

// For contiguous rows of odd length or odd stride: completes the last pair, and aligns rows to pairs.
template <typename Elements, typename P>
LeftPlaces CompletedPairs(const P& p, float* room) {
  const Index places = Places<Elements>(p.inner), padded = WholeVectors(places);
  for (Index i = 0; i < p.rows; ++i) {
    const auto* row = p.left.data + i * p.left.row_stride;
    for (Index place = 0; place < places; place += kWide) {
      simd::Store(room + i * padded + place, Elements::LoadPlaces(row + 2 * place, p.inner - 2 * place));
    }
  }
  return {room, padded, 1};
}

template <typename Elements, typename P>
LeftPlaces LeftOf(const P& p, float* room) {
  constexpr Index kPair = Elements::Products::kPair;
  if constexpr (kPair == 1) {
    return {p.left.data, p.left.row_stride, p.left.column_stride};
  } else {
    if (p.left.column_stride != 1) return PairedRows<Elements>(p, room);
    if (p.inner % kPair != 0 || p.left.row_stride % kPair != 0) return CompletedPairs<Elements>(p, room);
    return {reinterpret_cast<const float*>(p.left.data), p.left.row_stride / kPair, 1};
  }
}

}  // namespace
}  // namespace plait::linear

#endif  // PLAIT_MODELS_LINEAR_KERNELS_OPERANDS_H_
