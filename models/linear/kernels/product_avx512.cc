#include "models/simd/avx512.h"

#include "models/linear/kernels/multiply.h"

namespace plait::linear {
namespace {

struct FloatElements {
  using Type = float;
  using Products = simd::FullProducts;
  static PLAIT_INLINE WideF32 LoadPlaces(const float* from, Index count) {
    return simd::Load<WideF32>(from, count);
  }
  static PLAIT_INLINE WideF32 PlaceRows(const float* row, const float*, Index lanes) {
    return simd::Load<WideF32>(row, lanes);
  }
  static PLAIT_INLINE WideF32 Load(const float* from, Index lanes) {
    return simd::Load<WideF32>(from, lanes);
  }
  static PLAIT_INLINE void Store(float* to, Index lanes, WideF32 v) { simd::Store(to, lanes, v); }
};

}  // namespace

const ProductKernels<float>* Avx512Products() {
  static constexpr ProductKernels<float> kKernels{"avx512", &Multiply<FloatElements>};
  return &kKernels;
}

}  // namespace plait::linear
