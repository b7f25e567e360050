// float operands, for kernels that are templates over `Elements`, which describes how elements are stored in memory:
// Type, Products (products.h), LoadPlaces (places from neighbours in memory), PlaceRows (places from two rows, lane by
// lane), Load and Store as float32. `lanes` and `count` may exceed the size of a vector.
#ifndef PLAIT_MODELS_SIMD_FLOAT_ELEMENTS_H_
#define PLAIT_MODELS_SIMD_FLOAT_ELEMENTS_H_

#include "models/simd/products.h"
#include "models/simd/tile.h"

namespace plait::simd {
namespace {

struct FloatElements {
  using Type = float;
  using Products = FullProducts;
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
}  // namespace plait::simd

#endif  // PLAIT_MODELS_SIMD_FLOAT_ELEMENTS_H_
