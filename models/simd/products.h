// How the kernels multiply: what one slot ("place") of a packed operand holds, and multiply-add on places.
//
// A policy has kPair (neighbours in k per place), Place (makes one place), PlaceRow and PlaceRows (make many, from a
// row and from two vectors lane by lane), MultiplyAdd, and AddRows (for bias sums).
#ifndef PLAIT_MODELS_SIMD_PRODUCTS_H_
#define PLAIT_MODELS_SIMD_PRODUCTS_H_

#include <cstdint>
#include <cstring>

#include "models/simd/vector_math.h"

namespace plait::simd {
namespace {

// The bits of the nearest bfloat16, ties to even; NaN stays NaN.
PLAIT_INLINE std::uint32_t BFloat16Bits(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  if (x != x) return (bits >> 16) | 0x40u;
  return (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
}

PLAIT_INLINE float FromBits(std::uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

// Products without rounding of the factors.
struct FullProducts {
  static constexpr bool kBFloat16 = false;
  static constexpr int kPair = 1;
  template <typename T>
  static PLAIT_INLINE T Place(T x, T) {
    return x;
  }
  template <typename T>
  static void PlaceRow(const T* from, std::int64_t count, T* to) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
  }
  template <typename V>
  static PLAIT_INLINE V PlaceRows(V v, V) {
    return v;
  }
  template <typename V>
  static PLAIT_INLINE V MultiplyAdd(Lane<V> a, V b, V sum) {
    return Fma(Splat<V>(a), b, sum);
  }
  template <typename V>
  static PLAIT_INLINE V AddRows(V sum, V rows) {
    return sum + rows;
  }
};

// Products of factors rounded to bfloat16, which are exact in float32, with ordinary multiply-adds. A float64 is
// rounded to float32 first.
struct RoundedProducts : FullProducts {
  static constexpr bool kBFloat16 = true;
  template <typename T>
  static PLAIT_INLINE T Place(T x, T) {
    return static_cast<T>(FromBits(BFloat16Bits(static_cast<float>(x)) << 16));
  }
  template <typename T>
  static void PlaceRow(const T* from, std::int64_t count, T* to) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = Place(from[i], T(0));
  }
  template <typename V>
  static PLAIT_INLINE V PlaceRows(V v, V) {
    for (int i = 0; i < kLanes<V>; ++i) v[i] = Place(v[i], Lane<V>(0));
    return v;
  }
};

}  // namespace
}  // namespace plait::simd

#endif  // PLAIT_MODELS_SIMD_PRODUCTS_H_
