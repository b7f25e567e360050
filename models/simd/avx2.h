// Vectors of 32 bytes, with halves of 16 for the last columns (AVX2, FMA). Included by one .cc only.
#ifndef PLAIT_MODELS_SIMD_AVX2_H_
#define PLAIT_MODELS_SIMD_AVX2_H_

#include <immintrin.h>

#include <cstdint>

namespace plait::simd {
namespace {

constexpr int kRegisters = 16;

using WideF32 = float __attribute__((vector_size(32)));
using HalfF32 = float __attribute__((vector_size(16)));
using WideF64 = double __attribute__((vector_size(32)));
using HalfF64 = double __attribute__((vector_size(16)));

// Reading `lanes` entries from Mask + lanes - count gives -1 for the first `count` lanes and 0 for the
// others.
constexpr std::int32_t kMask32[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
constexpr std::int64_t kMask64[8] = {-1, -1, -1, -1, 0, 0, 0, 0};
inline const __m256i* Mask32(std::int64_t count) {
  return reinterpret_cast<const __m256i*>(kMask32 + 8 - count);
}
inline const __m256i* Mask64(std::int64_t count) {
  return reinterpret_cast<const __m256i*>(kMask64 + 4 - count);
}

inline WideF32 Fma(WideF32 a, WideF32 b, WideF32 c) {
  return (WideF32)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
inline HalfF32 Fma(HalfF32 a, HalfF32 b, HalfF32 c) {
  return (HalfF32)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)c);
}
inline WideF64 Fma(WideF64 a, WideF64 b, WideF64 c) {
  return (WideF64)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
inline HalfF64 Fma(HalfF64 a, HalfF64 b, HalfF64 c) {
  return (HalfF64)_mm_fmadd_pd((__m128d)a, (__m128d)b, (__m128d)c);
}

inline void LoadFirst(const float* from, std::int64_t count, WideF32& v) {
  v = (WideF32)_mm256_maskload_ps(from, _mm256_loadu_si256(Mask32(count)));
}
inline void LoadFirst(const float* from, std::int64_t count, HalfF32& v) {
  v = (HalfF32)_mm_maskload_ps(from, _mm256_castsi256_si128(_mm256_loadu_si256(Mask32(count))));
}
inline void LoadFirst(const double* from, std::int64_t count, WideF64& v) {
  v = (WideF64)_mm256_maskload_pd(from, _mm256_loadu_si256(Mask64(count)));
}
inline void LoadFirst(const double* from, std::int64_t count, HalfF64& v) {
  v = (HalfF64)_mm_maskload_pd(from, _mm256_castsi256_si128(_mm256_loadu_si256(Mask64(count))));
}

inline void StoreFirst(float* to, std::int64_t count, WideF32 v) {
  _mm256_maskstore_ps(to, _mm256_loadu_si256(Mask32(count)), (__m256)v);
}
inline void StoreFirst(float* to, std::int64_t count, HalfF32 v) {
  _mm_maskstore_ps(to, _mm256_castsi256_si128(_mm256_loadu_si256(Mask32(count))), (__m128)v);
}
inline void StoreFirst(double* to, std::int64_t count, WideF64 v) {
  _mm256_maskstore_pd(to, _mm256_loadu_si256(Mask64(count)), (__m256d)v);
}
inline void StoreFirst(double* to, std::int64_t count, HalfF64 v) {
  _mm_maskstore_pd(to, _mm256_castsi256_si128(_mm256_loadu_si256(Mask64(count))), (__m128d)v);
}

}  // namespace
}  // namespace plait::simd

#endif  // PLAIT_MODELS_SIMD_AVX2_H_
