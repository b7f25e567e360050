// The loops of a product: blocks of rows, groups of columns, chunks of k, panels, tiles. A .cc includes the
// header of its family (models/simd), then this file.
//
// A panel of the right operand, two vectors wide, is packed and stays in the second-level cache while tiles
// of 14 rows, whose sums fill the registers, pass over it; the left operand is read as it lies. This is the
// scheme of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS 34 (2008),
// without packing of the left operand, which costs more than it brings where the other one is as narrow.
#ifndef PLAIT_MODELS_LINEAR_KERNELS_MULTIPLY_H_
#define PLAIT_MODELS_LINEAR_KERNELS_MULTIPLY_H_

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

// What all tiles of one panel and chunk share.
template <typename Elements>
struct PanelWork {
  const Product<typename Elements::Type>* product;
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

template <typename Elements, int kRows, int kVectors>
using SumsOf = simd::Tile<WideF32, WideF32, kRows, kVectors, false>;

template <typename Elements, int kRows, int kVectors>
PLAIT_INLINE void Finish(const SumsOf<Elements, kRows, kVectors>& sums, const PanelWork<Elements>& work,
                         Index row) {
  const auto& p = *work.product;
#pragma GCC unroll 2
  for (int j = 0; j < kVectors; ++j) {
    const Index column = work.column + j * kWide;
    const Index lanes = p.columns - column;
    const WideF32 bias = p.bias == nullptr ? WideF32{} : Elements::Load(p.bias + column, lanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const Index at = (row + i) * p.out_stride + column;
      WideF32 value = sums.wide[i][j];
      if (p.bias != nullptr) value += bias;
      if (p.residual != nullptr) value += Elements::Load(p.residual + at, lanes);
      Elements::Store(p.out + at, lanes, value);
    }
  }
}

template <typename Elements, int kRows, int kVectors>
void ComputeTile(const PanelWork<Elements>& work, Index row) {
  SumsOf<Elements, kRows, kVectors> sums;
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
  const LeftPlaces& left = *work.left;
  const float* from = left.data + row * left.row_stride + work.first_place * left.place_stride;
  simd::Accumulate<typename Elements::Products, false>(sums, work.places, from, left.row_stride,
                                                       left.place_stride, work.panel, kVectors * kWide, 0);
  if (work.ends) return Finish<Elements, kRows, kVectors>(sums, work, row);
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) simd::Store(kept + i * kPanelColumns + j * kWide, sums.wide[i][j]);
  }
}

// Tiles of kTileRows rows, then one of what is left.
template <typename Elements, int kVectors, int kRows = kTileRows>
void LastTile(const PanelWork<Elements>& work, Index row, Index rows) {
  if constexpr (kRows > 0) {
    if (rows == kRows) return ComputeTile<Elements, kRows, kVectors>(work, row);
    LastTile<Elements, kVectors, kRows - 1>(work, row, rows);
  }
}

template <typename Elements, int kVectors>
void ComputePanel(const PanelWork<Elements>& work, Index last_row) {
  Index row = work.first_row;
  for (; row + kTileRows <= last_row; row += kTileRows) ComputeTile<Elements, kTileRows, kVectors>(work, row);
  if (row < last_row) LastTile<Elements, kVectors>(work, row, last_row - row);
}

// Panels [first, last), no more than a group, for a block of rows.
template <typename Elements>
void ComputeGroup(const Product<typename Elements::Type>& p, const LeftPlaces& left, Index first, Index last,
                  Index first_row, Index last_row, float* panel) {
  const Index places = Places<Elements>(p.inner);
  const Index kept = (last_row - first_row) * kPanelColumns;
  const Room unfinished = places > kPlacesPerChunk ? RoomFor((last - first) * kept) : nullptr;
  Index begin = 0;
  do {
    const Index end = Least(begin + kPlacesPerChunk, places);
    for (Index i = first; i < last; ++i) {
      const Index column = i * kPanelColumns, count = Least(p.columns - column, kPanelColumns);
      const Index width = count <= kWide ? kWide : kPanelColumns;
      PackPanel<Elements>(p, begin, end, column, count, width, panel);
      const PanelWork<Elements> work{.product = &p,
                                     .left = &left,
                                     .panel = panel,
                                     .first_place = begin,
                                     .places = end - begin,
                                     .column = column,
                                     .unfinished = unfinished.get() + (i - first) * (unfinished ? kept : 0),
                                     .first_row = first_row,
                                     .begins = begin == 0,
                                     .ends = end == places};
      width == kWide ? ComputePanel<Elements, 1>(work, last_row) : ComputePanel<Elements, 2>(work, last_row);
    }
    begin = end;
  } while (begin < places);
}

template <typename Elements>
void Multiply(const Product<typename Elements::Type>& p, const ForRanges& for_ranges) {
  const LeftPlaces left = LeftOf<Elements>(p);
  for_ranges((p.columns + kPanelColumns - 1) / kPanelColumns, [&](Index first, Index last) {
    const Room panel = RoomFor(Least(Places<Elements>(p.inner), kPlacesPerChunk) * kPanelColumns);
    for (Index row = 0; row < p.rows; row += kRowsPerBlock) {
      for (Index i = first; i < last; i += kPanelsPerGroup) {
        ComputeGroup<Elements>(p, left, i, Least(i + kPanelsPerGroup, last), row,
                               Least(row + kRowsPerBlock, p.rows), panel.get());
      }
    }
  });
}

}  // namespace
}  // namespace plait::linear

#endif  // PLAIT_MODELS_LINEAR_KERNELS_MULTIPLY_H_
