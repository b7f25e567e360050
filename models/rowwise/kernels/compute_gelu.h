// GELU of row_functions.h for one family; a .cc includes the family's header (models/simd) first.
#ifndef PLAIT_MODELS_ROWWISE_KERNELS_COMPUTE_GELU_H_
#define PLAIT_MODELS_ROWWISE_KERNELS_COMPUTE_GELU_H_

#include "models/rowwise/kernels/row_functions.h"
#include "models/simd/tile.h"

namespace plait::rowwise {
namespace {

using simd::Fma;
using simd::Splat;

constexpr float kRootHalf = 0.70710678118654752440f;
constexpr float kRootTwoOverPi = 0.79788456080286535588f;
constexpr float kCubic = 0.044715f;

template <typename V>
PLAIT_INLINE V ExpOf(V y) {
  const V least = Splat<V>(-simd::ExpConstants<float>::kLargest);
  const V bounded = y > least ? y : least;
  const simd::ScaledExp<V> e = simd::Exp(bounded);
  return Fma(e.scale, e.p, e.scale);
}

template <typename V>
PLAIT_INLINE V Between(V v, float least, float largest) {
  v = v > Splat<V>(least) ? v : Splat<V>(least);
  return v < Splat<V>(largest) ? v : Splat<V>(largest);
}

// sum of terms[i] x^i
template <typename V, int kTerms>
PLAIT_INLINE V Polynomial(const float (&terms)[kTerms], V x) {
  V sum = Splat<V>(terms[kTerms - 1]);
#pragma GCC unroll 16
  for (int i = kTerms - 2; i >= 0; --i) sum = Fma(sum, x, Splat<V>(terms[i]));
  return sum;
}

// erf(z) = z P(z^2) / Q(z^2), fitted to it on [0, 3.9] with least largest error, 1.5e-8; rounding makes that
// 3.6e-7. Behind 3.9 it is 1 within 3.5e-8.
template <typename V>
PLAIT_INLINE V Erf(V z) {
  constexpr float kP[] = {1.1283790f, 0.19193983f, 0.052966744f, 0.0038368197f, 2.8745507e-4f, 2.0503844e-6f};
  constexpr float kQ[] = {1.0f, 0.503434f, 0.114757694f, 0.015109092f, 0.001181719f, 3.8230599e-5f};
  z = Between(z, -3.9f, 3.9f);
  const V w = z * z;
  return Between(z * Polynomial(kP, w) / Polynomial(kQ, w), -1, 1);
}

// The normal distribution's function, and its derivative.
template <typename V>
PLAIT_INLINE V Normal(V x) {
  return Fma(Splat<V>(0.5f), Erf(x * Splat<V>(kRootHalf)), Splat<V>(0.5f));
}
template <typename V>
PLAIT_INLINE V NormalDensity(V x) {
  return Splat<V>(0.5f * kRootTwoOverPi) * ExpOf(Splat<V>(-0.5f) * x * x);
}

// (1 + tanh(u)) / 2 = sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3)
template <typename V>
PLAIT_INLINE V TanhNormal(V x) {
  const V cubed = Fma(x * x * x, Splat<V>(kCubic), x);
  return simd::Sigmoid(cubed * Splat<V>(2 * kRootTwoOverPi));
}

template <typename V>
PLAIT_INLINE V GeluOf(V x, bool exact) {
  return x * (exact ? Normal(x) : TanhNormal(x));
}

template <typename V>
PLAIT_INLINE V GeluSlope(V x, bool exact) {
  if (exact) return Fma(x, NormalDensity(x), Normal(x));
  const V s = TanhNormal(x);
  const V inner = Fma(x * x, Splat<V>(3 * kCubic), Splat<V>(1)) * Splat<V>(2 * kRootTwoOverPi);
  return Fma(x * s * (Splat<V>(1) - s), inner, s);
}

// Calls f(first, lanes) for vectors of `count` numbers, with a constant for all but the last.
template <typename F>
PLAIT_INLINE void ForVectors(simd::Index count, const F& f) {
  constexpr simd::Index kStep = simd::kLanes<simd::WideF32>;
  simd::Index i = 0;
  for (; i + kStep <= count; i += kStep) f(i, kStep);
  if (i < count) f(i, count - i);
}

template <typename Elements, typename T>
void GeluArray(GeluKind kind, const T* x, simd::Index count, T* y) {
  const bool exact = kind == GeluKind::kExact;
  ForVectors(
      count, [&](simd::Index i, simd::Index lanes) __attribute__((always_inline)) {
        Elements::Store(y + i, lanes, GeluOf(Elements::Load(x + i, lanes), exact));
      });
}

template <typename Elements, typename T>
void GeluArrayOfX(GeluKind kind, const T* x, const T* of_y, simd::Index count, T* of_x) {
  const bool exact = kind == GeluKind::kExact;
  ForVectors(
      count, [&](simd::Index i, simd::Index lanes) __attribute__((always_inline)) {
        const simd::WideF32 slope = GeluSlope(Elements::Load(x + i, lanes), exact);
        Elements::Store(of_x + i, lanes, slope * Elements::Load(of_y + i, lanes));
      });
}

}  // namespace
}  // namespace plait::rowwise

#endif  // PLAIT_MODELS_ROWWISE_KERNELS_COMPUTE_GELU_H_
