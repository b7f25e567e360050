// Convolutions of planes (step.h) for one family; a .cc includes the family's header (models/simd) first.
//
// A sum is formed in the order bias, channels, and for each channel its nine weights: bitwise identical in any tile.
#ifndef PLAIT_MODELS_ODENET_KERNELS_CONVOLVE_H_
#define PLAIT_MODELS_ODENET_KERNELS_CONVOLVE_H_

#include "models/odenet/kernels/planes.h"

namespace plait::odenet {
namespace {

// weight[o out + c in + t tap] takes channel c, shifted by t = 3 (row + 1) + column + 1, to channel o.
struct Filter {
  const float* weight;
  const float* bias;  // or none
  Index out, in, tap;
};

inline Filter ForwardFilter(const float* weight, const float* bias, Index channels) {
  return {weight, bias, 9 * channels, 9, 1};
}
// The transposed convolution.
inline Filter AdjointFilter(const float* weight, Index channels) {
  return {weight + 8, nullptr, 9, 9 * channels, -1};
}

// finish(o, p, sums) gets kWide positions from p on of channels o = first ... first + kOut - 1.
template <int kOut, int kVectors, typename Finish>
PLAIT_INLINE void ConvolveTile(const Filter& filter, Index first, Index channels, const float* planes,
                               const Plane& plane, Index p, const Finish& finish) {
  WideF32 sums[kOut][kVectors];
#pragma GCC unroll 4
  for (int o = 0; o < kOut; ++o) {
    const WideF32 bias = simd::Splat<WideF32>(filter.bias == nullptr ? 0 : filter.bias[first + o]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[o][v] = bias;
  }
  const Index stride = plane.stride();
  const float* weight = filter.weight + first * filter.out;
  const float* in = planes + p;
  for (Index c = 0; c < channels; ++c, weight += filter.in, in += plane.size()) {
#pragma GCC unroll 9
    for (int t = 0; t < 9; ++t) {
      const float* const shifted = in + t / 3 * stride + t % 3;
      WideF32 factor[kOut];
#pragma GCC unroll 4
      for (int o = 0; o < kOut; ++o)
        factor[o] = simd::Splat<WideF32>(weight[o * filter.out + t * filter.tap]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const WideF32 x = simd::Load<WideF32>(shifted + v * kWide);
#pragma GCC unroll 4
        for (int o = 0; o < kOut; ++o) sums[o][v] = simd::Fma(factor[o], x, sums[o][v]);
      }
    }
  }
#pragma GCC unroll 4
  for (int o = 0; o < kOut; ++o) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) finish(first + o, p + v * kWide, sums[o][v]);
  }
}

template <int kOut, typename Finish>
void ConvolveChannels(const Filter& filter, Index first, Index channels, const float* planes,
                      const Plane& plane, const Finish& finish) {
  constexpr int kFit = (simd::kRegisters - kOut - 2) / kOut, kVectors = kFit < 8 ? kFit : 8;
  const Index end = End(plane);
  Index p = 0;
  for (; p + kVectors * kWide <= end; p += kVectors * kWide)
    ConvolveTile<kOut, kVectors>(filter, first, channels, planes, plane, p, finish);
  for (; p < end; p += kWide) ConvolveTile<kOut, 1>(filter, first, channels, planes, plane, p, finish);
}

constexpr Index kChannelsTogether = 4;

// Calls call(first, count) for the fewest parts of at most kChannelsTogether channels, as equal as possible.
template <typename Call>
void InParts(Index channels, const Call& call) {
  Index parts = (channels + kChannelsTogether - 1) / kChannelsTogether;
  for (Index first = 0; first < channels; --parts) {
    const Index count = (channels - first + parts - 1) / parts;
    call(first, count);
    first += count;
  }
}

template <typename Finish>
void Convolve(const Filter& filter, Index channels, const float* planes, const Plane& plane,
              const Finish& finish) {
  InParts(channels, [&](Index first, Index count) {
    if (count == 1) ConvolveChannels<1>(filter, first, channels, planes, plane, finish);
    if (count == 2) ConvolveChannels<2>(filter, first, channels, planes, plane, finish);
    if (count == 3) ConvolveChannels<3>(filter, first, channels, planes, plane, finish);
    if (count == 4) ConvolveChannels<4>(filter, first, channels, planes, plane, finish);
  });
}

}  // namespace
}  // namespace plait::odenet

#endif  // PLAIT_MODELS_ODENET_KERNELS_CONVOLVE_H_
