#include "models/simd/avx512.h"

#include "models/linear/kernels/multiply.h"
#include "models/simd/pair_products_avx512.h"

namespace plait::linear {
namespace {

using HalfWords = std::uint16_t __attribute__((vector_size(32)));
using Words = std::uint32_t __attribute__((vector_size(64)));

struct BFloat16Elements {
  using Type = BFloat16;
  using Products = simd::PairProducts;
  static PLAIT_INLINE __mmask16 First(Index lanes) {
    return static_cast<__mmask16>(lanes >= kWide ? 0xFFFF : simd::FirstLanes(lanes));
  }
  // 16 places from `count` numbers on.
  static PLAIT_INLINE WideF32 LoadPlaces(const BFloat16* from, Index count) {
    const __mmask32 first = count >= 2 * kWide ? ~__mmask32{0} : (__mmask32{1} << count) - 1;
    return (WideF32)_mm512_maskz_loadu_epi16(first, from);
  }
  static PLAIT_INLINE Words Widened(const BFloat16* from, Index lanes) {
    return __builtin_convertvector((HalfWords)_mm256_maskz_loadu_epi16(First(lanes), from), Words);
  }
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

const ProductKernels<BFloat16>* Avx512PairProducts() {
  static constexpr ProductKernels<BFloat16> kKernels{"avx512 pairs", &Multiply<BFloat16Elements>};
  return &kKernels;
}

}  // namespace plait::linear
