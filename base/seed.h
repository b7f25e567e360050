// One 64-bit seed for a whole run; independent random streams derived from it by name and number.
//
//   const std::uint64_t init = DeriveSeed(seed, "parameters", layer);  // for set_current_seed
//   RandomStream order(DeriveSeed(seed, "shuffle", epoch));
//   Shuffle(order, absl::MakeSpan(indices));
//
// The same (seed, name, index) gives the same numbers on every rank, machine, compiler and version of Plait. Include
// the rank only where ranks must draw different numbers. Not cryptographically secure. Local.
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

// SplitMix64: 64 bits of state, every 64-bit number once per period of 2^64. A copy repeats the stream. A
// UniformRandomBitGenerator; unlike the standard library's distributions, those below give the same numbers everywhere.
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
  // Standard normal (Box-Muller); consumes two draws per call.
  double Normal();

  // Saves the position: RandomStream(state()) continues the stream.
  std::uint64_t state() const { return state_; }

 private:
  std::uint64_t state_;
};

// Fisher-Yates shuffle, from the back; every order is equally likely.
template <typename T>
void Shuffle(RandomStream& stream, absl::Span<T> values) {
  for (std::size_t left = values.size(); left > 1; --left) {
    std::swap(values[left - 1], values[stream.Below(left)]);
  }
}

}  // namespace plait::base

#endif  // PLAIT_BASE_SEED_H_
