// Operands of bfloat16, multiplied in pairs (AVX-512 BF16 and BW); see float_elements.h.
#ifndef PLAIT_MODELS_SIMD_BFLOAT16_ELEMENTS_AVX512_H_
#define PLAIT_MODELS_SIMD_BFLOAT16_ELEMENTS_AVX512_H_

#include <immintrin.h>

#include <cstdint>

#include "models/simd/bfloat16.h"
#include "models/simd/pair_products_avx512.h"
#include "models/simd/tile.h"

namespace plait::simd {
namespace {

using Words = std::uint32_t __attribute__((vector_size(64)));

struct BFloat16Elements {
  using Type = BFloat16;
  using Products = PairProducts;
  static PLAIT_INLINE __mmask16 First(Index lanes) {
    return static_cast<__mmask16>(lanes >= kLanes<WideF32> ? 0xFFFF : FirstLanes(lanes));
  }
  // 16 places from `count` elements; zero beyond them.
  static PLAIT_INLINE WideF32 LoadPlaces(const BFloat16* from, Index count) {
    const __mmask32 first = count >= 2 * kLanes<WideF32> ? ~__mmask32{0} : (__mmask32{1} << count) - 1;
    return (WideF32)_mm512_maskz_loadu_epi16(first, from);
  }
  static PLAIT_INLINE Words Widened(const BFloat16* from, Index lanes) {
    const __mmask16 first = First(lanes);
    return (Words)_mm512_maskz_cvtepu16_epi32(first, _mm256_maskz_loadu_epi16(first, from));
  }
  // Without a next row the second half of a place is zero.
  static PLAIT_INLINE WideF32 PlaceRows(const BFloat16* row, const BFloat16* next, Index lanes) {
    const Words low = Widened(row, lanes);
    return (WideF32)(next == nullptr ? low : low | Widened(next, lanes) << 16);
  }
  static PLAIT_INLINE WideF32 Load(const BFloat16* from, Index lanes) {
    return (WideF32)(Widened(from, lanes) << 16);
  }
  static PLAIT_INLINE void Store(BFloat16* to, Index lanes, WideF32 v) {
    _mm256_mask_storeu_epi16(to, First(lanes), (__m256i)_mm512_cvtneps_pbh((__m512)v));
  }
};

}  // namespace
}  // namespace plait::simd

#endif  // PLAIT_MODELS_SIMD_BFLOAT16_ELEMENTS_AVX512_H_
