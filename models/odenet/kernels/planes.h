// Images to planes (step.h) and back, for one family; a .cc includes the family's header (models/simd) first.
// Does not use templates of the standard library: their instantiations for one family could be linked into another.
#ifndef PLAIT_MODELS_ODENET_KERNELS_PLANES_H_
#define PLAIT_MODELS_ODENET_KERNELS_PLANES_H_

#include "models/odenet/kernels/step.h"
#include "models/simd/tile.h"

namespace plait::odenet {
namespace {

using simd::Index;
using simd::WideF32;

constexpr Index kWide = simd::kLanes<WideF32>;

// The end of the vectors that have a position of the plane.
inline Index End(const Plane& plane) { return (plane.positions() + kWide - 1) / kWide * kWide; }

inline void Clear(float* from, float* end) {
  while (from < end) *from++ = 0;
}

inline void CopyRow(const float* from, Index columns, float* to) {
  for (Index i = 0; i < columns; i += kWide)
    simd::Store(to + i, columns - i, simd::Load<WideF32>(from + i, columns - i));
}

// `planes`: zero outside of the images.
inline void ToPlanes(const float* image, Index channels, const Plane& plane, float* planes) {
  for (Index c = 0; c < channels; ++c) {
    float* row = planes + c * plane.size() + plane.first();
    for (Index r = 0; r < plane.rows; ++r, image += plane.columns, row += plane.stride())
      CopyRow(image, plane.columns, row);
  }
}

inline void FromPlanes(const float* planes, Index channels, const Plane& plane, float* image) {
  for (Index c = 0; c < channels; ++c) {
    const float* row = planes + c * plane.size() + plane.first();
    for (Index r = 0; r < plane.rows; ++r, image += plane.columns, row += plane.stride())
      CopyRow(row, plane.columns, image);
  }
}

// Zeros in front of the positions, behind them, and behind each row.
inline void ClearMargins(Index channels, const Plane& plane, float* planes) {
  for (Index c = 0; c < channels; ++c, planes += plane.size()) {
    Clear(planes, planes + plane.first());
    Clear(planes + plane.first() + plane.positions(), planes + plane.size());
    for (Index r = 1; r <= plane.rows; ++r) planes[plane.first() + r * plane.stride() - 1] = 0;
  }
}

}  // namespace
}  // namespace plait::odenet

#endif  // PLAIT_MODELS_ODENET_KERNELS_PLANES_H_
