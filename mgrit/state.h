// States u_i as the solver holds them: boxes whose content only the problem knows.
//
// StateOperations<S> says how to copy, combine, measure and send an S. It is given here for arithmetic types
// and for contiguous ranges of them (std::vector, std::array); specialise it for a type of your own.
#ifndef PLAIT_MGRIT_STATE_H_
#define PLAIT_MGRIT_STATE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace plait::mgrit {

class State {
 public:
  virtual ~State() = default;
};

template <typename S>
class StateOf final : public State {
 public:
  explicit StateOf(S initial) : value(std::move(initial)) {}
  S value;
};

template <typename S>
S& Value(State& state) {
  return static_cast<StateOf<S>&>(state).value;
}
template <typename S>
const S& Value(const State& state) {
  return static_cast<const StateOf<S>&>(state).value;
}

// Combine: y = alpha x + beta y. NormSquared: the square of the 2-norm, in double whatever the type.
// Pack writes exactly PackedBytes(x) bytes; Unpack reads them into a state of the same shape.
template <typename S, typename = void>
struct StateOperations;

// The same for `count` contiguous numbers.
template <typename T>
struct ArrayOperations {
  static_assert(std::is_floating_point_v<T>);

  static void Combine(double alpha, const T* x, double beta, T* y, std::size_t count) {
    const T a = static_cast<T>(alpha);
    const T b = static_cast<T>(beta);
    for (std::size_t i = 0; i < count; ++i) y[i] = a * x[i] + b * y[i];
  }
  static double NormSquared(const T* x, std::size_t count) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    return sum;
  }
};

template <typename T>
struct StateOperations<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  static void Copy(const T& x, T& y) { y = x; }
  static void Combine(double alpha, const T& x, double beta, T& y) {
    ArrayOperations<T>::Combine(alpha, &x, beta, &y, 1);
  }
  static double NormSquared(const T& x) { return ArrayOperations<T>::NormSquared(&x, 1); }
  static std::int64_t PackedBytes(const T&) { return sizeof(T); }
  static void Pack(const T& x, absl::Span<std::byte> bytes) { std::memcpy(bytes.data(), &x, sizeof(T)); }
  static void Unpack(absl::Span<const std::byte> bytes, T& x) { std::memcpy(&x, bytes.data(), sizeof(T)); }
};

// Ranges with data() and size(): both sides of an operation have the same size.
template <typename Range, typename T>
struct RangeOperations {
  static void Copy(const Range& x, Range& y) { y = x; }
  static void Combine(double alpha, const Range& x, double beta, Range& y) {
    ArrayOperations<T>::Combine(alpha, x.data(), beta, y.data(), y.size());
  }
  static double NormSquared(const Range& x) { return ArrayOperations<T>::NormSquared(x.data(), x.size()); }
  static std::int64_t PackedBytes(const Range& x) { return static_cast<std::int64_t>(x.size() * sizeof(T)); }
  static void Pack(const Range& x, absl::Span<std::byte> bytes) {
    std::memcpy(bytes.data(), x.data(), x.size() * sizeof(T));
  }
  static void Unpack(absl::Span<const std::byte> bytes, Range& x) {
    std::memcpy(x.data(), bytes.data(), x.size() * sizeof(T));
  }
};

template <typename T>
struct StateOperations<std::vector<T>> : RangeOperations<std::vector<T>, T> {};
template <typename T, std::size_t N>
struct StateOperations<std::array<T, N>> : RangeOperations<std::array<T, N>, T> {};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_STATE_H_
