// Vectors of 64 bytes, with halves of 32 for the last columns (AVX-512 F, VL, DQ). Included by one .cc only.
#ifndef PLAIT_MODELS_SIMD_AVX512_H_
#define PLAIT_MODELS_SIMD_AVX512_H_

#include <immintrin.h>

#include <cstdint>

namespace plait::simd {
namespace {

constexpr int kRegisters = 32;

using WideF32 = float __attribute__((vector_size(64)));
using HalfF32 = float __attribute__((vector_size(32)));
using WideF64 = double __attribute__((vector_size(64)));
using HalfF64 = double __attribute__((vector_size(32)));

inline unsigned FirstLanes(std::int64_t count) { return (1u << count) - 1; }

inline WideF32 Fma(WideF32 a, WideF32 b, WideF32 c) {
  return (WideF32)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
inline HalfF32 Fma(HalfF32 a, HalfF32 b, HalfF32 c) {
  return (HalfF32)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
inline WideF64 Fma(WideF64 a, WideF64 b, WideF64 c) {
  return (WideF64)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
inline HalfF64 Fma(HalfF64 a, HalfF64 b, HalfF64 c) {
  return (HalfF64)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}

inline void LoadFirst(const float* from, std::int64_t count, WideF32& v) {
  v = (WideF32)_mm512_maskz_loadu_ps(static_cast<__mmask16>(FirstLanes(count)), from);
}
inline void LoadFirst(const float* from, std::int64_t count, HalfF32& v) {
  v = (HalfF32)_mm256_maskz_loadu_ps(static_cast<__mmask8>(FirstLanes(count)), from);
}
inline void LoadFirst(const double* from, std::int64_t count, WideF64& v) {
  v = (WideF64)_mm512_maskz_loadu_pd(static_cast<__mmask8>(FirstLanes(count)), from);
}
inline void LoadFirst(const double* from, std::int64_t count, HalfF64& v) {
  v = (HalfF64)_mm256_maskz_loadu_pd(static_cast<__mmask8>(FirstLanes(count)), from);
}

inline void StoreFirst(float* to, std::int64_t count, WideF32 v) {
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>(FirstLanes(count)), (__m512)v);
}
inline void StoreFirst(float* to, std::int64_t count, HalfF32 v) {
  _mm256_mask_storeu_ps(to, static_cast<__mmask8>(FirstLanes(count)), (__m256)v);
}
inline void StoreFirst(double* to, std::int64_t count, WideF64 v) {
  _mm512_mask_storeu_pd(to, static_cast<__mmask8>(FirstLanes(count)), (__m512d)v);
}
inline void StoreFirst(double* to, std::int64_t count, HalfF64 v) {
  _mm256_mask_storeu_pd(to, static_cast<__mmask8>(FirstLanes(count)), (__m256d)v);
}

}  // namespace
}  // namespace plait::simd

#endif  // PLAIT_MODELS_SIMD_AVX512_H_
