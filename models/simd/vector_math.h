// exp-based sigmoid and tanh on vectors, and the traits that kernels use. Included after the header of a
// family.
//
// exp(y) = 2^n (1 + p(f)), n = round(y / ln 2), f = y - n ln 2 in two parts, p the Taylor polynomial of
// expm1. With |f| <= 0.3467 its remainder is below |f|^8/8! = 5.2e-9 in float (degree 7), |f|^14/14!
// = 4.1e-18 in double (degree 13): under a third of an ulp. Sigmoid and tanh are within 4 ulp (test:
// models/gru/kernels/kernels_test.cc).
#ifndef PLAIT_MODELS_SIMD_VECTOR_MATH_H_
#define PLAIT_MODELS_SIMD_VECTOR_MATH_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace plait::simd {
namespace {

#define PLAIT_INLINE inline __attribute__((always_inline))

template <typename T>
struct Family;
template <>
struct Family<float> {
  using Wide = WideF32;
  using Half = HalfF32;
};
template <>
struct Family<double> {
  using Wide = WideF64;
  using Half = HalfF64;
};

template <typename V>
using Lane = std::remove_cvref_t<decltype(V{}[0])>;
// Integers of the lanes' size: what a comparison of vectors gives.
template <typename V>
using IntegerLanes = decltype(V{} < V{});
template <typename V>
constexpr int kLanes = sizeof(V) / sizeof(Lane<V>);

template <typename V>
PLAIT_INLINE V Load(const Lane<V>* from) {
  V v;
  std::memcpy(&v, from, sizeof(V));
  return v;
}
template <typename V>
PLAIT_INLINE void Store(Lane<V>* to, V v) {
  std::memcpy(to, &v, sizeof(V));
}
template <typename V>
PLAIT_INLINE V Splat(Lane<V> value) {
  return value - V{};
}
template <typename V>
PLAIT_INLINE V Load(const Lane<V>* from, std::int64_t count) {
  if (count >= kLanes<V>) return Load<V>(from);
  V v;
  LoadFirst(from, count, v);
  return v;
}
template <typename V>
PLAIT_INLINE void Store(Lane<V>* to, std::int64_t count, V v) {
  if (count >= kLanes<V>) {
    Store(to, v);
  } else {
    StoreFirst(to, count, v);
  }
}

template <typename T>
struct ExpConstants;
template <>
struct ExpConstants<float> {
  using Bits = std::int32_t;
  static constexpr int kMantissa = 23;
  static constexpr Bits kOne = 0x3F800000;
  static constexpr float kShift = 0x1.8p23f;  // adding it rounds to an integer
  static constexpr float kLn2High = 0x1.63p-1f;
  static constexpr float kLn2Low = -0x1.bd0106p-13f;
  static constexpr float kLargest = 87.0f;  // exp(+-87) is a normal number
  static constexpr float kTaylor[] = {1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f};
};
template <>
struct ExpConstants<double> {
  using Bits = std::int64_t;
  static constexpr int kMantissa = 52;
  static constexpr Bits kOne = 0x3FF0000000000000;
  static constexpr double kShift = 0x1.8p52;
  static constexpr double kLn2High = 0x1.62e42fee00000p-1;
  static constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  static constexpr double kLargest = 700.0;
  static constexpr double kTaylor[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
                                       1.0 / 362880,     1.0 / 40320,     1.0 / 5040,     1.0 / 720,
                                       1.0 / 120,        1.0 / 24,        1.0 / 6,        0.5};
};

// exp(y) = scale (1 + p); |y| at most kLargest.
template <typename V>
struct ScaledExp {
  V scale;
  V p;
};

template <typename V>
PLAIT_INLINE ScaledExp<V> Exp(V y) {
  using C = ExpConstants<Lane<V>>;
  using Bits = IntegerLanes<V>;
  const V shifted = Fma(y, Splat<V>(static_cast<Lane<V>>(1.4426950408889634)), Splat<V>(C::kShift));
  const V n = shifted - Splat<V>(C::kShift);
  V f = Fma(n, Splat<V>(-C::kLn2High), y);
  f = Fma(n, Splat<V>(-C::kLn2Low), f);
  V q = Splat<V>(C::kTaylor[0]);
#pragma GCC unroll 16
  for (std::size_t i = 1; i < sizeof(C::kTaylor) / sizeof(C::kTaylor[0]); ++i)
    q = Fma(q, f, Splat<V>(C::kTaylor[i]));
  const V p = Fma(f * f, q, f);
  const Bits exponent = ((Bits)shifted << C::kMantissa) + C::kOne;
  return {(V)exponent, p};
}

template <typename V>
PLAIT_INLINE V Sigmoid(V x) {
  const V largest = Splat<V>(ExpConstants<Lane<V>>::kLargest);
  V y = -x;
  y = y > largest ? largest : y;
  y = y < -largest ? -largest : y;
  const ScaledExp<V> e = Exp(y);
  const V one = Splat<V>(1);
  return one / (one + Fma(e.scale, e.p, e.scale));
}

// tanh |x| = expm1(2 |x|) / (expm1(2 |x|) + 2): small |x| keep their relative accuracy.
template <typename V>
PLAIT_INLINE V Tanh(V x) {
  using Bits = IntegerLanes<V>;
  const Bits sign = (Bits)x & (Bits)Splat<V>(static_cast<Lane<V>>(-0.0));
  V y = (V)((Bits)x ^ sign);
  y = y + y;
  y = y > Splat<V>(40) ? Splat<V>(40) : y;  // tanh(20) is 1 in float and double
  const ScaledExp<V> e = Exp(y);
  const V m = Fma(e.scale, e.p, e.scale - Splat<V>(1));
  return (V)((Bits)(m / (m + Splat<V>(2))) | sign);
}

}  // namespace
}  // namespace plait::simd

#endif  // PLAIT_MODELS_SIMD_VECTOR_MATH_H_
