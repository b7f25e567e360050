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

// erfc(z) / 2 for z >= 0, within a part in 1e-6: t / 2 exp(-z^2 + polynomial in t), t = 2 / (2 + z), after
// Press et al., Numerical Recipes in C, 2nd edition, section 6.2.
template <typename V>
PLAIT_INLINE V HalfErfc(V z) {
  constexpr float kTerms[] = {0.17087277f,  -0.82215223f, 1.48851587f, -1.13520398f, 0.27886807f,
                              -0.18628806f, 0.09678418f,  0.37409196f, 1.00002368f,  -1.26551223f};
  const V t = Splat<V>(2) / (Splat<V>(2) + z);
  V p = Splat<V>(kTerms[0]);
#pragma GCC unroll 16
  for (int i = 1; i < 10; ++i) p = Fma(p, t, Splat<V>(kTerms[i]));
  return Splat<V>(0.5f) * t * ExpOf(Fma(-z, z, p));
}

// The normal distribution's function, and its derivative.
template <typename V>
PLAIT_INLINE V Normal(V x) {
  const V z = x * Splat<V>(kRootHalf);
  const V tail = HalfErfc(z < V{} ? -z : z);
  return x < V{} ? tail : Splat<V>(1) - tail;
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

template <typename Elements, typename T>
void GeluArray(GeluKind kind, const T* x, simd::Index count, T* y) {
  constexpr simd::Index kStep = simd::kLanes<simd::WideF32>;
  const bool exact = kind == GeluKind::kExact;
  for (simd::Index i = 0; i < count; i += kStep) {
    Elements::Store(y + i, count - i, GeluOf(Elements::Load(x + i, count - i), exact));
  }
}

template <typename Elements, typename T>
void GeluArrayOfX(GeluKind kind, const T* x, const T* of_y, simd::Index count, T* of_x) {
  constexpr simd::Index kStep = simd::kLanes<simd::WideF32>;
  const bool exact = kind == GeluKind::kExact;
  for (simd::Index i = 0; i < count; i += kStep) {
    const simd::WideF32 slope = GeluSlope(Elements::Load(x + i, count - i), exact);
    Elements::Store(of_x + i, count - i, slope * Elements::Load(of_y + i, count - i));
  }
}

}  // namespace
}  // namespace plait::rowwise

#endif  // PLAIT_MODELS_ROWWISE_KERNELS_COMPUTE_GELU_H_
