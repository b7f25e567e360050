// The loops of a product: blocks of rows, groups of columns, chunks of k, panels, tiles. A .cc includes the
// header of its family (models/simd), then this file.
//
// A panel of the right operand, two vectors wide, is packed and stays in the second-level cache while tiles of 14
// rows, whose sums fill the registers, pass over it; the left operand is not packed. This is the scheme of Goto
// and van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS 34 (2008), except that
// packing the left operand does not pay off with panels this narrow.
#ifndef PLAIT_MODELS_LINEAR_KERNELS_MULTIPLY_H_
#define PLAIT_MODELS_LINEAR_KERNELS_MULTIPLY_H_

#include <algorithm>
#include <type_traits>

#include "models/linear/kernels/operands.h"

namespace plait::linear {
namespace {

constexpr int kTileRows = 14;
constexpr int kPanelVectors = 2;
constexpr Index kPanelColumns = kPanelVectors * kWide;
constexpr Index kRowsPerBlock = 72 * kTileRows;
constexpr Index kPlacesPerChunk = 1024;  // a panel of 128 KiB
constexpr Index kPanelsPerGroup = 16;    // whose unfinished sums are kept between chunks

// Element types of operands and results.
template <typename OperandElements, typename OutElements = OperandElements>
struct ProductKind {
  using Elements = OperandElements;
  using Out = OutElements;
  using Product = linear::Product<typename Elements::Type, typename Out::Type>;
};

// Shared by all tiles of one panel and chunk.
template <typename Kind>
struct PanelWork {
  const typename Kind::Product* product;
  const LeftPlaces* left;
  const float* panel;
  Index first_place = 0;
  Index places = 0;
  Index column = 0;
  float* unfinished = nullptr;  // sums of this panel between chunks, kPanelColumns wide, from `first_row` on
  Index first_row = 0;
  bool begins = true;
  bool ends = true;
};

template <int kRows, int kVectors>
using SumsOf = simd::Tile<WideF32, WideF32, kRows, kVectors, false>;

template <typename Kind, int kRows, int kVectors>
PLAIT_INLINE void Finish(const SumsOf<kRows, kVectors>& sums, const PanelWork<Kind>& work, Index row) {
  const auto& p = *work.product;
#pragma GCC unroll 2
  for (int j = 0; j < kVectors; ++j) {
    const Index column = work.column + j * kWide;
    const Index lanes = p.columns - column;
    const WideF32 bias = p.bias == nullptr ? WideF32{} : Kind::Out::Load(p.bias + column, lanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const Index at = (row + i) * p.out_stride + column;
      WideF32 value = sums.wide[i][j];
      if (p.bias != nullptr) value += bias;
      if (p.residual != nullptr) value += Kind::Out::Load(p.residual + at, lanes);
      Kind::Out::Store(p.out + at, lanes, value);
    }
  }
}

// Prefetches the cache lines of a tile's results: weight gradients of many experts are written to memory with few
// multiplications per element.
template <typename Kind, int kRows, int kVectors>
PLAIT_INLINE void FetchResults(const PanelWork<Kind>& work, Index row) {
  const auto* to = work.product->out + row * work.product->out_stride + work.column;
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    __builtin_prefetch(to + i * work.product->out_stride, 1);
    if (kVectors * kWide * sizeof(*to) > 64) __builtin_prefetch(to + i * work.product->out_stride + kWide, 1);
  }
}

template <typename Kind, int kRows, int kVectors>
void ComputeTile(const PanelWork<Kind>& work, Index row) {
  SumsOf<kRows, kVectors> sums;
  float* kept = work.unfinished + (row - work.first_row) * kPanelColumns;
  sums.Clear();
  if (!work.begins) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j)
        sums.wide[i][j] = simd::Load<WideF32>(kept + i * kPanelColumns + j * kWide);
    }
  }
  if (work.ends) FetchResults<Kind, kRows, kVectors>(work, row);
  const LeftPlaces& left = *work.left;
  const float* from = left.data + row * left.row_stride + work.first_place * left.place_stride;
  simd::Accumulate<typename Kind::Elements::Products, false>(
      sums, work.places, from, left.row_stride, left.place_stride, work.panel, kVectors * kWide, 0);
  if (work.ends) return Finish<Kind, kRows, kVectors>(sums, work, row);
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) simd::Store(kept + i * kPanelColumns + j * kWide, sums.wide[i][j]);
  }
}

template <typename Kind, int kVectors, int kRows = kTileRows>
void ComputeTileOf(const PanelWork<Kind>& work, Index row, Index rows) {
  if constexpr (kRows > 0) {
    if (rows == kRows) return ComputeTile<Kind, kRows, kVectors>(work, row);
    ComputeTileOf<Kind, kVectors, kRows - 1>(work, row, rows);
  }
}

// Tiles of kTileRows rows, then one with the rest; a rest of very few rows, whose sums would wait for each other, is
// evened out with the last whole tile.
template <typename Kind, int kVectors>
void ComputePanel(const PanelWork<Kind>& work, Index last_row, PanelAhead ahead) {
  constexpr Index kFewRows = 4;
  Index row = work.first_row;
  const Index lines_of_tile = ahead.lines() / ((last_row - row + kTileRows - 1) / kTileRows) + 1;
  while (row < last_row) {
    const Index left = last_row - row;
    ahead.Fetch(lines_of_tile);
    const Index rows =
        left > kTileRows && left < kTileRows + kFewRows ? (left + 1) / 2 : Least(left, kTileRows);
    if (rows == kTileRows) {
      ComputeTile<Kind, kTileRows, kVectors>(work, row);
    } else {
      ComputeTileOf<Kind, kVectors, kTileRows - 1>(work, row, rows);
    }
    row += rows;
  }
}

// Panels [first, last), no more than a group, for a block of rows.
template <typename Kind>
void ComputeGroup(const typename Kind::Product& p, const LeftPlaces& left, Index first, Index last,
                  Index first_row, Index last_row, float* panel) {
  const Index places = Places<typename Kind::Elements>(p.inner);
  const Index kept = (last_row - first_row) * kPanelColumns;
  const Room unfinished = places > kPlacesPerChunk ? RoomFor((last - first) * kept) : nullptr;
  Index begin = 0;
  do {
    const Index end = Least(begin + kPlacesPerChunk, places);
    for (Index i = first; i < last; ++i) {
      const Index column = i * kPanelColumns, count = Least(p.columns - column, kPanelColumns);
      const Index width = count <= kWide ? kWide : kPanelColumns;
      PackPanel<typename Kind::Elements>(p, begin, end, column, count, width, panel);
      const PanelWork<Kind> work{.product = &p,
                                 .left = &left,
                                 .panel = panel,
                                 .first_place = begin,
                                 .places = end - begin,
                                 .column = column,
                                 .unfinished = unfinished.get() + (i - first) * (unfinished ? kept : 0),
                                 .first_row = first_row,
                                 .begins = begin == 0,
                                 .ends = end == places};
      constexpr Index kPair = Kind::Elements::Products::kPair;
      const Index next = column + kPanelColumns;
      const PanelAhead ahead = i + 1 == last ? PanelAhead()
                                             : PanelAhead(p, begin * kPair, Least(end * kPair, p.inner), next,
                                                          Least(p.columns - next, kPanelColumns));
      width == kWide ? ComputePanel<Kind, 1>(work, last_row, ahead)
                     : ComputePanel<Kind, 2>(work, last_row, ahead);
    }
    begin = end;
  } while (begin < places);
}

// Size of a packed panel in floats.
template <typename Elements>
constexpr Index PanelRoom(Index inner) {
  return Least(Places<Elements>(inner), kPlacesPerChunk) * kPanelColumns;
}

// Panels [first, last).
template <typename Kind>
void ComputePanels(const typename Kind::Product& p, const LeftPlaces& left, Index first, Index last,
                   float* panel) {
  for (Index row = 0; row < p.rows; row += kRowsPerBlock) {
    for (Index i = first; i < last; i += kPanelsPerGroup) {
      ComputeGroup<Kind>(p, left, i, Least(i + kPanelsPerGroup, last), row,
                         Least(row + kRowsPerBlock, p.rows), panel);
    }
  }
}

constexpr Index Panels(Index columns) { return (columns + kPanelColumns - 1) / kPanelColumns; }

template <typename Kind>
void Multiply(const typename Kind::Product& p, const ForRanges& for_ranges) {
  using Elements = typename Kind::Elements;
  const Index left_room = LeftRoom<Elements>(p);
  const Room room = left_room > 0 ? RoomFor(left_room) : nullptr;
  const LeftPlaces left = LeftOf<Elements>(p, room.get());
  for_ranges(Panels(p.columns), [&](Index first, Index last) {
    const Room panel = RoomFor(PanelRoom<Elements>(p.inner));
    ComputePanels<Kind>(p, left, first, last, panel.get());
  });
}

// The cost of a panel, in multiplications per column; packing it costs as much as a few rows.
template <typename P>
Index CostOfPanel(const P& p) {
  constexpr Index kRowsOfPacking = 8;
  return (p.rows + kRowsOfPacking) * (p.inner + 1);
}

// Lays all panels of all products end to end, each as long as its cost, and divides the total into ranges for threads.
// A thread computes the panels that begin in its range, and prepares their left operands for itself.
template <typename Kind>
void MultiplyEach(const typename Kind::Product* products, Index count, const ForRanges& for_ranges) {
  using Elements = typename Kind::Elements;
  Index length = 0, panel_room = 0, left_room = 0;
  for (Index i = 0; i < count; ++i) {
    length += Panels(products[i].columns) * CostOfPanel(products[i]);
    panel_room = std::max(panel_room, PanelRoom<Elements>(products[i].inner));
    left_room = std::max(left_room, LeftRoom<Elements>(products[i]));
  }
  for_ranges(length, [&](Index begin, Index end) {
    const Room panel = RoomFor(panel_room), room = RoomFor(left_room);
    for (const auto* p = products; p != products + count && end > 0; ++p) {
      const Index panels = Panels(p->columns), cost = CostOfPanel(*p);
      const Index first = (begin + cost - 1) / cost, last = std::min(panels, (end + cost - 1) / cost);
      if (first < last) ComputePanels<Kind>(*p, LeftOf<Elements>(*p, room.get()), first, last, panel.get());
      begin = std::max<Index>(0, begin - panels * cost);
      end -= panels * cost;
    }
  });
}

}  // namespace
}  // namespace plait::linear

#endif  // PLAIT_MODELS_LINEAR_KERNELS_MULTIPLY_H_
