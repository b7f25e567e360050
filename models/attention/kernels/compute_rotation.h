// Rotary positions of head.h, for one family of processors; a .cc includes the family's header (models/simd) first.
#ifndef PLAIT_MODELS_ATTENTION_KERNELS_COMPUTE_ROTATION_H_
#define PLAIT_MODELS_ATTENTION_KERNELS_COMPUTE_ROTATION_H_

#include <cstddef>
#include <utility>

#include "models/attention/kernels/head.h"
#include "models/simd/tile.h"

namespace plait::attention {
namespace {

// Swaps the lanes of each pair.
template <std::size_t... kLane>
PLAIT_INLINE simd::WideF32 WithPairsSwapped(simd::WideF32 v, std::index_sequence<kLane...>) {
  return __builtin_shufflevector(v, v, (kLane ^ 1)...);
}

template <typename Elements>
void Rotate(const RotatedHeads<typename Elements::Type>& h, simd::Index first, simd::Index last) {
  constexpr simd::Index kLanes = simd::kLanes<simd::WideF32>;
  const simd::WideF32 way = simd::Splat<simd::WideF32>(h.back ? -1 : 1);
  for (simd::Index i = first; i < last; ++i) {
    const float *cosines = h.cosines + i % h.seq * h.width, *sines = h.sines + i % h.seq * h.width;
    for (simd::Index j = 0; j < h.width; j += kLanes) {
      const simd::Index lanes = h.width - j;
      const simd::WideF32 cosine = simd::Load<simd::WideF32>(cosines + j, lanes);
      const simd::WideF32 sine = simd::Load<simd::WideF32>(sines + j, lanes) * way;
      for (simd::Index head = 0; head < h.heads; ++head) {
        const simd::Index at = head * h.width + j;
        const simd::WideF32 x = Elements::Load(h.x.data + i * h.x.stride + at, lanes);
        const simd::WideF32 swapped = WithPairsSwapped(x, std::make_index_sequence<kLanes>());
        Elements::Store(h.out.data + i * h.out.stride + at, lanes, simd::Fma(swapped, sine, x * cosine));
      }
    }
  }
}

}  // namespace
}  // namespace plait::attention

#endif  // PLAIT_MODELS_ATTENTION_KERNELS_COMPUTE_ROTATION_H_
