// One 64-bit seed for a whole run; independent random streams derived from it by name and number.
//
//   const std::uint64_t init = DeriveSeed(seed, "parameters", layer);  // for set_current_seed
//   RandomStream order(DeriveSeed(seed, "shuffle", epoch));
//   Shuffle(order, absl::MakeSpan(indices));
//
// The same (seed, name, index) gives the same numbers on every rank, machine, compiler and version of Plait;
// the rank must not be part of them unless ranks shall differ. Nothing here is for cryptography. Local, no
// global state.
#ifndef PLAIT_BASE_SEED_H_
#define PLAIT_BASE_SEED_H_

#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "absl/types/span.h"

namespace plait::base {

// Different names or indices give unrelated seeds: FNV-1a over the name, then the mixing rounds of SplitMix64
// (Steele, Lea, Flood, OOPSLA 2014) over seed, name and index.
std::uint64_t DeriveSeed(std::uint64_t seed, std::string_view name, std::uint64_t index = 0);

// The sequence of SplitMix64: 64 bits of state, every 64-bit number once per period of 2^64. Copies repeat
// the stream. A UniformRandomBitGenerator; the standard's distributions differ between libraries, those here
// do not.
class RandomStream {
 public:
  using result_type = std::uint64_t;
  explicit RandomStream(std::uint64_t seed) : state_(seed) {}

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  result_type operator()();

  // Uniform in [0, bound), without bias (Lemire, TOMACS 2019). `bound` must be positive.
  std::uint64_t Below(std::uint64_t bound);
  // Uniform in [0, 1), 53 bits.
  double Uniform();
  // Standard normal by Box and Muller, two draws a call.
  double Normal();

  // To save and restore a stream at the same place.
  std::uint64_t state() const { return state_; }

 private:
  std::uint64_t state_;
};

// Fisher and Yates, from the back; every order equally likely.
template <typename T>
void Shuffle(RandomStream& stream, absl::Span<T> values) {
  for (std::size_t left = values.size(); left > 1; --left) {
    std::swap(values[left - 1], values[stream.Below(left)]);
  }
}

}  // namespace plait::base

#endif  // PLAIT_BASE_SEED_H_
