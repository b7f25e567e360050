// Steps and their adjoints (step.h) for one family; a .cc includes the family's header (models/simd) first.
#ifndef PLAIT_MODELS_ODENET_KERNELS_COMPUTE_STEP_H_
#define PLAIT_MODELS_ODENET_KERNELS_COMPUTE_STEP_H_

#include <cstdint>
#include <cstring>

#include "models/odenet/kernels/correlate.h"

namespace plait::odenet {
namespace {

using Lanes = simd::IntegerLanes<WideF32>;
using Bytes = std::int8_t __attribute__((vector_size(kWide)));

// NaN passes both.
PLAIT_INLINE WideF32 Relu(WideF32 x) { return x < WideF32{} ? WideF32{} : x; }
PLAIT_INLINE WideF32 WherePassed(WideF32 result, WideF32 gradient) {
  return result <= WideF32{} ? WideF32{} : gradient;
}

// What becomes of a convolution's sums.
struct StoreRelu {
  Plane plane;
  float* to;
  PLAIT_INLINE void operator()(Index channel, Index p, WideF32 sum) const {
    simd::Store(to + channel * plane.size() + plane.first() + p, plane.positions() - p, Relu(sum));
  }
};

struct StoreStep {
  Plane plane;
  WideF32 scale;
  const float* u;
  float* to;
  std::int8_t* active;  // or none
  PLAIT_INLINE void operator()(Index channel, Index p, WideF32 sum) const {
    const Index at = channel * plane.size() + plane.first() + p;
    simd::Store(to + at, simd::Fma(scale, Relu(sum), simd::Load<WideF32>(u + at)));
    if (active == nullptr) return;
    const Bytes passed = __builtin_convertvector(~(sum <= WideF32{}), Bytes);
    std::memcpy(active + channel * plane.whole_vectors() + p, &passed, sizeof(passed));
  }
};

struct StoreWherePassed {
  Plane plane;
  const float* result;
  float* to;
  PLAIT_INLINE void operator()(Index channel, Index p, WideF32 sum) const {
    const Index at = channel * plane.size() + plane.first() + p;
    simd::Store(to + at, plane.positions() - p, WherePassed(simd::Load<WideF32>(result + at), sum));
  }
};

struct StoreSum {
  Plane plane;
  const float* addend;
  float* to;
  PLAIT_INLINE void operator()(Index channel, Index p, WideF32 sum) const {
    const Index at = channel * plane.size() + plane.first() + p;
    simd::Store(to + at, sum + simd::Load<WideF32>(addend + at));
  }
};

inline void Forward(const StepForward& s, Index first, Index last, float* scratch) {
  const Index planes = s.channels * s.plane.size(), numbers = s.channels * s.plane.rows * s.plane.columns;
  float *const u = scratch, *const out = scratch + planes, *const own_middle = scratch + 2 * planes;
  for (Index i = first; i < last; ++i) {
    float* const middle = s.middle == nullptr ? own_middle : s.middle + i * planes;
    ToPlanes(s.u + i * numbers, s.channels, s.plane, u);
    Convolve(ForwardFilter(s.weight_1, s.bias_1, s.channels), s.channels, u, s.plane,
             StoreRelu{s.plane, middle});
    ClearMargins(s.channels, s.plane, middle);
    std::int8_t* const active =
        s.active == nullptr ? nullptr : s.active + i * s.channels * s.plane.whole_vectors();
    Convolve(ForwardFilter(s.weight_2, s.bias_2, s.channels), s.channels, middle, s.plane,
             StoreStep{s.plane, simd::Splat<WideF32>(s.scale), u, out, active});
    FromPlanes(out, s.channels, s.plane, s.out + i * numbers);
  }
}

// An image's u and gradients, in planes. Those of the results of both convolutions are zero in their margins.
struct ImagePlanes {
  float *u, *of_out, *of_2, *of_1, *of_u;
};

inline void GradientOfSecond(const StepBackward& s, Index image, const ImagePlanes& g) {
  const WideF32 scale = simd::Splat<WideF32>(s.scale);
  for (Index c = 0; c < s.channels; ++c) {
    const std::int8_t* const active = s.active + (image * s.channels + c) * s.plane.whole_vectors();
    const Index at = c * s.plane.size() + s.plane.first();
    for (Index p = 0; p < End(s.plane); p += kWide) {
      Bytes passed;
      std::memcpy(&passed, active + p, sizeof(passed));
      const WideF32 gradient = scale * simd::Load<WideF32>(g.of_out + at + p);
      simd::Store(g.of_2 + at + p, (WideF32)((Lanes)gradient & __builtin_convertvector(passed, Lanes)));
    }
  }
}

inline void BackwardImage(const StepBackward& s, Index image, const ImagePlanes& g, const Sums* sums) {
  const Index planes = s.channels * s.plane.size(), numbers = s.channels * s.plane.rows * s.plane.columns;
  const float* const middle = s.middle + image * planes;
  ToPlanes(s.of_out + image * numbers, s.channels, s.plane, g.of_out);
  GradientOfSecond(s, image, g);
  Convolve(AdjointFilter(s.weight_2, s.channels), s.channels, g.of_2, s.plane,
           StoreWherePassed{s.plane, middle, g.of_1});
  if (s.of_parameters != nullptr) {
    ToPlanes(s.u + image * numbers, s.channels, s.plane, g.u);
    Correlate(g.of_1, g.u, s.plane, sums[0]);
    Correlate(g.of_2, middle, s.plane, sums[1]);
  }
  if (s.of_u == nullptr) return;
  Convolve(AdjointFilter(s.weight_1, s.channels), s.channels, g.of_1, s.plane,
           StoreSum{s.plane, g.of_out, g.of_u});
  FromPlanes(g.of_u, s.channels, s.plane, s.of_u + image * numbers);
}

inline void Backward(const StepBackward& s, Index first, Index last, float* scratch) {
  const Index planes = s.channels * s.plane.size(), parameters = Sums::Parameters(s.channels);
  const ImagePlanes image_planes = {scratch, scratch + planes, scratch + 2 * planes, scratch + 3 * planes,
                                    scratch + 4 * planes};
  float *const data = scratch + 5 * planes, *const data_2 = data + parameters * kWide;
  const Sums sums[] = {{data, s.channels}, {data_2, s.channels}};
  for (Index group = first; group < last; ++group) {
    if (s.of_parameters != nullptr) Clear(data, data + 2 * parameters * kWide);
    const Index begin = group * StepBackward::kGroup, end = begin + StepBackward::kGroup;
    for (Index image = begin; image < end && image < s.images; ++image)
      BackwardImage(s, image, image_planes, sums);
    if (s.of_parameters == nullptr) continue;
    float* const to = s.of_parameters + group * s.parameters();
    FoldSums(sums[0], to);
    FoldSums(sums[1], to + parameters);
  }
}

constexpr StepKernels MakeSteps(const char* name) { return {name, &Forward, &Backward}; }

}  // namespace
}  // namespace plait::odenet

#endif  // PLAIT_MODELS_ODENET_KERNELS_COMPUTE_STEP_H_
