// Gradients of a convolution's weights and biases for one family; a .cc includes the family's header (models/simd) first.
#ifndef PLAIT_MODELS_ODENET_KERNELS_CORRELATE_H_
#define PLAIT_MODELS_ODENET_KERNELS_CORRELATE_H_

#include "models/odenet/kernels/convolve.h"
#include "models/simd/fold.h"

namespace plait::odenet {
namespace {

// Sums of one convolution, a vector for each parameter: (channels, channels, 9) weights, then (channels) biases.
struct Sums {
  float* data;
  Index channels;

  static Index Parameters(Index channels) { return (9 * channels + 1) * channels; }
  float* Weight(Index out, Index in) const { return data + (out * channels + in) * 9 * kWide; }
  float* Bias(Index out) const { return data + (9 * channels * channels + out) * kWide; }
};

// Adds the products of kOut planes `of` with channel `in` of `planes`, shifted by kTaps shifts from `tap` on.
template <int kOut, int kTaps>
PLAIT_INLINE void CorrelateTile(const float* of, Index first, const float* planes, Index in, int tap,
                                const Plane& plane, const Sums& to) {
  WideF32 sums[kOut][kTaps];
#pragma GCC unroll 4
  for (int o = 0; o < kOut; ++o) {
#pragma GCC unroll 9
    for (int t = 0; t < kTaps; ++t)
      sums[o][t] = simd::Load<WideF32>(to.Weight(first + o, in) + (tap + t) * kWide);
  }
  const float* const from = of + first * plane.size() + plane.first();
  const float* const x = planes + in * plane.size() + tap / 3 * plane.stride();
  const Index end = End(plane), stride = plane.stride(), size = plane.size();
  for (Index p = 0; p < end; p += kWide) {
    WideF32 g[kOut];
#pragma GCC unroll 4
    for (int o = 0; o < kOut; ++o) g[o] = simd::Load<WideF32>(from + o * size + p);
#pragma GCC unroll 9
    for (int t = 0; t < kTaps; ++t) {
      const WideF32 shifted = simd::Load<WideF32>(x + p + t / 3 * stride + t % 3);
#pragma GCC unroll 4
      for (int o = 0; o < kOut; ++o) sums[o][t] = simd::Fma(g[o], shifted, sums[o][t]);
    }
  }
#pragma GCC unroll 4
  for (int o = 0; o < kOut; ++o) {
#pragma GCC unroll 9
    for (int t = 0; t < kTaps; ++t) simd::Store(to.Weight(first + o, in) + (tap + t) * kWide, sums[o][t]);
  }
}

template <int kOut>
void CorrelateChannels(const float* of, Index first, const float* planes, const Plane& plane,
                       const Sums& to) {
  constexpr int kTaps = 9 * kOut + kOut + 1 <= simd::kRegisters ? 9 : 3;
  for (Index in = 0; in < to.channels; ++in) {
    for (int tap = 0; tap < 9; tap += kTaps)
      CorrelateTile<kOut, kTaps>(of, first, planes, in, tap, plane, to);
  }
}

// Adds an image's share: `of`, planes of the gradient of the convolution's result, zero in their margins; `planes`, what
// the convolution read.
inline void Correlate(const float* of, const float* planes, const Plane& plane, const Sums& to) {
  InParts(to.channels, [&](Index first, Index count) {
    if (count == 1) CorrelateChannels<1>(of, first, planes, plane, to);
    if (count == 2) CorrelateChannels<2>(of, first, planes, plane, to);
    if (count == 3) CorrelateChannels<3>(of, first, planes, plane, to);
    if (count == 4) CorrelateChannels<4>(of, first, planes, plane, to);
  });
  for (Index o = 0; o < to.channels; ++o) {
    const float* const from = of + o * plane.size() + plane.first();
    WideF32 sum = simd::Load<WideF32>(to.Bias(o));
    for (Index p = 0; p < End(plane); p += kWide) sum += simd::Load<WideF32>(from + p);
    simd::Store(to.Bias(o), sum);
  }
}

inline void FoldSums(const Sums& sums, float* to) {
  for (Index i = 0; i < Sums::Parameters(sums.channels); ++i) {
    to[i] =
        simd::Fold(simd::Load<WideF32>(sums.data + i * kWide), [](WideF32 a, WideF32 b) { return a + b; });
  }
}

}  // namespace
}  // namespace plait::odenet

#endif  // PLAIT_MODELS_ODENET_KERNELS_CORRELATE_H_
