// Activations of row_functions.h for one family; a .cc includes the family's header (models/simd) first.
#ifndef PLAIT_MODELS_ROWWISE_KERNELS_COMPUTE_ACTIVATION_H_
#define PLAIT_MODELS_ROWWISE_KERNELS_COMPUTE_ACTIVATION_H_

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

// erf(z) = z P(z^2) / Q(z^2), a minimax fit on [0, 3.9] with error 1.5e-8; 3.6e-7 with rounding. Beyond 3.9 erf is 1
// within 3.5e-8.
template <typename V>
PLAIT_INLINE V Erf(V z) {
  constexpr float kP[] = {1.1283790f, 0.19193983f, 0.052966744f, 0.0038368197f, 2.8745507e-4f, 2.0503844e-6f};
  constexpr float kQ[] = {1.0f, 0.503434f, 0.114757694f, 0.015109092f, 0.001181719f, 3.8230599e-5f};
  z = Between(z, -3.9f, 3.9f);
  const V w = z * z;
  return Between(z * Polynomial(kP, w) / Polynomial(kQ, w), -1, 1);
}

// The CDF of the normal distribution, and its density.
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

// In [-30, 30], where GELU's slopes are what they are beyond; products of larger numbers overflow. A NaN stays one.
template <typename V>
PLAIT_INLINE V Bounded(V x) {
  constexpr float kFar = 30;
  x = x > Splat<V>(kFar) ? Splat<V>(kFar) : x;
  return x < Splat<V>(-kFar) ? Splat<V>(-kFar) : x;
}

// f(x) and its derivative. A NaN stays one.
template <typename V>
struct ValueAndSlope {
  V value, slope;
};

template <Activation kF, typename V>
PLAIT_INLINE ValueAndSlope<V> Evaluate(V x) {
  const V zero{}, one = Splat<V>(1);
  if constexpr (kF == Activation::kGelu) {
    const V normal = Normal(x);
    const V near = Bounded(x);
    return {x * normal, Fma(near, NormalDensity(near), normal)};
  } else if constexpr (kF == Activation::kGeluTanh) {
    const V s = TanhNormal(x);
    const V near = Bounded(x);
    const V inner = Fma(near * near, Splat<V>(3 * kCubic), one) * Splat<V>(2 * kRootTwoOverPi);
    return {x * s, Fma(near * s * (one - s), inner, s)};
  } else if constexpr (kF == Activation::kRelu) {
    return {x < zero ? zero : x, x <= zero ? zero : one};
  } else {
    const V s = simd::Sigmoid(x);
    return {x * s, s * Fma(x, one - s, one)};
  }
}

// Calls f(i, lanes) for vectors of numbers [first, last), with a constant for all but the last.
template <typename F>
PLAIT_INLINE void ForVectors(simd::Index first, simd::Index last, const F& f) {
  constexpr simd::Index kStep = simd::kLanes<simd::WideF32>;
  simd::Index i = first;
  for (; i + kStep <= last; i += kStep) f(i, kStep);
  if (i < last) f(i, last - i);
}

template <Activation kF, typename Elements, typename T>
void ActivateBy(const ActivationForward<T>& pass, simd::Index first, simd::Index last) {
  ForVectors(
      first, last, [&](simd::Index i, simd::Index lanes) __attribute__((always_inline)) {
        simd::WideF32 y = Evaluate<kF>(Elements::Load(pass.x + i, lanes)).value;
        if (pass.factor != nullptr) y *= Elements::Load(pass.factor + i, lanes);
        Elements::Store(pass.y + i, lanes, y);
      });
}

template <Activation kF, typename Elements, typename T>
void ActivateWithSlopeBy(const ActivationForward<T>& pass, simd::Index first, simd::Index last) {
  ForVectors(
      first, last, [&](simd::Index i, simd::Index lanes) __attribute__((always_inline)) {
        auto [y, slope] = Evaluate<kF>(Elements::Load(pass.x + i, lanes));
        if (pass.factor != nullptr) y *= Elements::Load(pass.factor + i, lanes);
        Elements::Store(pass.y + i, lanes, y);
        Elements::Store(pass.slope + i, lanes, slope);
      });
}

template <Activation kF, typename Elements, typename T>
void ActivateBackwardBy(const ActivationBackward<T>& pass, simd::Index first, simd::Index last) {
  ForVectors(
      first, last, [&](simd::Index i, simd::Index lanes) __attribute__((always_inline)) {
        auto [y, slope] = Evaluate<kF>(Elements::Load(pass.x + i, lanes));
        const simd::WideF32 of_y = Elements::Load(pass.of_y + i, lanes);
        if (pass.factor != nullptr) {
          const simd::WideF32 factor = Elements::Load(pass.factor + i, lanes);
          Elements::Store(pass.of_factor + i, lanes, of_y * y);
          slope *= factor;
          y *= factor;
        }
        Elements::Store(pass.of_x + i, lanes, of_y * slope);
        if (pass.y != nullptr) Elements::Store(pass.y + i, lanes, y);
      });
}

// Calls run with the activation as a constant.
template <typename Run>
void WithActivation(Activation f, const Run& run) {
  switch (f) {
    case Activation::kGelu:
      return run.template operator()<Activation::kGelu>();
    case Activation::kGeluTanh:
      return run.template operator()<Activation::kGeluTanh>();
    case Activation::kRelu:
      return run.template operator()<Activation::kRelu>();
    case Activation::kSilu:
      return run.template operator()<Activation::kSilu>();
  }
}

template <typename Elements, typename T>
void Activate(const ActivationForward<T>& pass, simd::Index first, simd::Index last) {
  WithActivation(pass.f, [&]<Activation kF>() {
    pass.slope == nullptr ? ActivateBy<kF, Elements>(pass, first, last)
                          : ActivateWithSlopeBy<kF, Elements>(pass, first, last);
  });
}

template <typename Elements, typename T>
void ActivateBackward(const ActivationBackward<T>& pass, simd::Index first, simd::Index last) {
  WithActivation(pass.f, [&]<Activation kF>() { ActivateBackwardBy<kF, Elements>(pass, first, last); });
}

}  // namespace
}  // namespace plait::rowwise

#endif  // PLAIT_MODELS_ROWWISE_KERNELS_COMPUTE_ACTIVATION_H_
