// Products of pairs of bfloat16 with one instruction (AVX-512 BF16), at twice the rate of float32. The instruction
// flushes subnormals to zero and rounds after each of the two products.
#ifndef PLAIT_MODELS_SIMD_PAIR_PRODUCTS_AVX512_H_
#define PLAIT_MODELS_SIMD_PAIR_PRODUCTS_AVX512_H_

#include <immintrin.h>

#include "models/simd/products.h"

namespace plait::simd {
namespace {

struct PairProducts {
  static constexpr bool kBFloat16 = true;
  static constexpr int kPair = 2;
  static PLAIT_INLINE float Place(float first, float second) {
    return FromBits(BFloat16Bits(first) | BFloat16Bits(second) << 16);
  }
  static PLAIT_INLINE WideF32 Dot(WideF32 sum, __m512i a, WideF32 b) {
    return (WideF32)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
  }
  static PLAIT_INLINE HalfF32 Dot(HalfF32 sum, __m256i a, HalfF32 b) {
    return (HalfF32)_mm256_dpbf16_ps((__m256)sum, (__m256bh)a, (__m256bh)b);
  }
  static PLAIT_INLINE WideF32 MultiplyAdd(float a, WideF32 b, WideF32 sum) {
    return Dot(sum, _mm512_set1_epi32(Bits(a)), b);
  }
  static PLAIT_INLINE HalfF32 MultiplyAdd(float a, HalfF32 b, HalfF32 sum) {
    return Dot(sum, _mm256_set1_epi32(Bits(a)), b);
  }
  // Neighbouring lanes as places.
  static PLAIT_INLINE void StorePairs(float* to, WideF32 v) {
    _mm256_storeu_si256((__m256i*)to, (__m256i)_mm512_cvtneps_pbh((__m512)v));
  }
  static PLAIT_INLINE void StorePairs(float* to, HalfF32 v) {
    _mm_storeu_si128((__m128i*)to, (__m128i)_mm256_cvtneps_pbh((__m256)v));
  }
  static void PlaceRow(const float* from, std::int64_t count, float* to) {
    std::int64_t i = 0;
    for (; i + 16 <= count; i += 16) StorePairs(to + i / 2, Load<WideF32>(from + i));
    for (; i < count; i += 2) to[i / 2] = Place(from[i], i + 1 < count ? from[i + 1] : 0.0f);
  }
  static PLAIT_INLINE WideF32 PlaceRows(WideF32 first, WideF32 second) {
    using Half = std::uint16_t __attribute__((vector_size(32)));
    using Whole = std::uint32_t __attribute__((vector_size(64)));
    const Whole low = __builtin_convertvector((Half)_mm512_cvtneps_pbh((__m512)first), Whole);
    const Whole high = __builtin_convertvector((Half)_mm512_cvtneps_pbh((__m512)second), Whole);
    return (WideF32)(low | high << 16);
  }
  static PLAIT_INLINE HalfF32 PlaceRows(HalfF32 first, HalfF32 second) {
    using Half = std::uint16_t __attribute__((vector_size(16)));
    using Whole = std::uint32_t __attribute__((vector_size(32)));
    const Whole low = __builtin_convertvector((Half)_mm256_cvtneps_pbh((__m256)first), Whole);
    const Whole high = __builtin_convertvector((Half)_mm256_cvtneps_pbh((__m256)second), Whole);
    return (HalfF32)(low | high << 16);
  }
  template <typename V>
  static PLAIT_INLINE V AddRows(V sum, V rows) {
    return MultiplyAdd(FromBits(0x3F803F80u), rows, sum);  // (1, 1)
  }
  static PLAIT_INLINE int Bits(float place) {
    int bits;
    std::memcpy(&bits, &place, sizeof(bits));
    return bits;
  }
};

}  // namespace
}  // namespace plait::simd

#endif  // PLAIT_MODELS_SIMD_PAIR_PRODUCTS_AVX512_H_
