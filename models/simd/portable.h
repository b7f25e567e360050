// Vectors of 16 bytes for any processor, by the compiler's vector extension; no half. Included by one .cc
// only.
#ifndef PLAIT_MODELS_SIMD_PORTABLE_H_
#define PLAIT_MODELS_SIMD_PORTABLE_H_

#include <cstdint>

namespace plait::simd {
namespace {

constexpr int kRegisters = 16;

using WideF32 = float __attribute__((vector_size(16)));
using HalfF32 = WideF32;
using WideF64 = double __attribute__((vector_size(16)));
using HalfF64 = WideF64;

// Two roundings: the processor may have no fused product.
inline WideF32 Fma(WideF32 a, WideF32 b, WideF32 c) { return a * b + c; }
inline WideF64 Fma(WideF64 a, WideF64 b, WideF64 c) { return a * b + c; }

inline void LoadFirst(const float* from, std::int64_t count, WideF32& v) {
  v = WideF32{};
  for (std::int64_t i = 0; i < count; ++i) v[i] = from[i];
}
inline void LoadFirst(const double* from, std::int64_t count, WideF64& v) {
  v = WideF64{};
  for (std::int64_t i = 0; i < count; ++i) v[i] = from[i];
}
inline void StoreFirst(float* to, std::int64_t count, WideF32 v) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = v[i];
}
inline void StoreFirst(double* to, std::int64_t count, WideF64 v) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = v[i];
}

}  // namespace
}  // namespace plait::simd

#endif  // PLAIT_MODELS_SIMD_PORTABLE_H_
