// Type-erased states u_i, and the operations that a state type needs.
//
// StateOperations<S> defines how to copy, combine, measure and send an S. It is provided for floating-point types
// and std::vector and std::array of them; specialise it for your own type. Optional members: Memory (StateMemory)
// and Norms (HostNorms) for states on a device; Dot, the inner product that NormSquared belongs to, for the delta
// correction.
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

// The memory of a contiguous state. Not owned.
struct StateMemory {
  void* data = nullptr;
  std::int64_t bytes = 0;
  int cuda_device = -1;  // index of the CUDA device; -1: host memory
};

// Ends the program with a message: the states of one operation have different sizes.
[[noreturn]] void MismatchedStates(std::size_t x, std::size_t y);

// Whether S{} has the shape of every state. If not, a problem must define Make.
template <typename S>
inline constexpr bool kTypeHasShape = true;
template <typename T>
inline constexpr bool kTypeHasShape<std::vector<T>> = false;

// Combine: y = alpha x + beta y. NormSquared: the square of the 2-norm, in double whatever the type.
// Pack writes exactly PackedBytes(x) bytes; Unpack reads them into a state of the same shape.
template <typename S, typename = void>
struct StateOperations {
  static_assert(!std::is_same_v<S, S>,
                "no StateOperations for this type of state: specialise plait::mgrit::StateOperations<S> with "
                "Copy, Combine, "
                "NormSquared, PackedBytes, Pack and Unpack, as for double in mgrit/state.h");
  // So that this is the only error.
  static void Copy(const S&, S&);
  static void Combine(double, const S&, double, S&);
  static double NormSquared(const S&);
  static std::int64_t PackedBytes(const S&);
  static void Pack(const S&, absl::Span<std::byte>);
  static void Unpack(absl::Span<const std::byte>, S&);
};

// Squared norms that are recorded one at a time and read together.
template <typename S>
class HostNorms {
 public:
  void Put(std::int64_t slot, const S& x) { put_.emplace_back(slot, StateOperations<S>::NormSquared(x)); }
  // Writes the slots recorded since the last Take.
  void Take(absl::Span<double> squares) {
    for (const auto& [slot, square] : put_) squares[static_cast<std::size_t>(slot)] = square;
    put_.clear();
  }

 private:
  std::vector<std::pair<std::int64_t, double>> put_;
};

// Operations on `count` contiguous numbers.
template <typename T>
struct ArrayOperations {
  static_assert(std::is_floating_point_v<T>);

  static void Combine(double alpha, const T* x, double beta, T* y, std::size_t count) {
    const T a = static_cast<T>(alpha);
    const T b = static_cast<T>(beta);
    for (std::size_t i = 0; i < count; ++i) y[i] = a * x[i] + b * y[i];
  }
  static double NormSquared(const T* x, std::size_t count) { return Dot(x, x, count); }
  static double Dot(const T* x, const T* y, std::size_t count) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(y[i]);
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
  static double Dot(const T& x, const T& y) { return ArrayOperations<T>::Dot(&x, &y, 1); }
  static std::int64_t PackedBytes(const T&) { return sizeof(T); }
  static void Pack(const T& x, absl::Span<std::byte> bytes) { std::memcpy(bytes.data(), &x, sizeof(T)); }
  static void Unpack(absl::Span<const std::byte> bytes, T& x) { std::memcpy(&x, bytes.data(), sizeof(T)); }
};

// Ranges with data() and size(). The program ends if the states of an operation differ in size.
template <typename Range, typename T>
struct RangeOperations {
  static void Copy(const Range& x, Range& y) { y = x; }
  static void Combine(double alpha, const Range& x, double beta, Range& y) {
    if (x.size() != y.size()) MismatchedStates(x.size(), y.size());
    ArrayOperations<T>::Combine(alpha, x.data(), beta, y.data(), y.size());
  }
  static double NormSquared(const Range& x) { return ArrayOperations<T>::NormSquared(x.data(), x.size()); }
  static double Dot(const Range& x, const Range& y) {
    if (x.size() != y.size()) MismatchedStates(x.size(), y.size());
    return ArrayOperations<T>::Dot(x.data(), y.data(), x.size());
  }
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
