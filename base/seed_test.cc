#include "base/seed.h"

#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace plait::base {
namespace {

// The first outputs for state 1234567 as published with the reference implementation of SplitMix64.
TEST(RandomStreamTest, PublishedSequence) {
  RandomStream stream(1234567);
  EXPECT_EQ(stream(), 6457827717110365317u);
  EXPECT_EQ(stream(), 3203168211198807973u);
  EXPECT_EQ(stream(), 9817491932198370423u);
}

TEST(DeriveSeedTest, DistinctForNamesIndicesAndSeeds) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const char* name : {"", "a", "b", "ab", "shuffle"}) {
      for (std::uint64_t index = 0; index < 100; ++index) seen.insert(DeriveSeed(seed, name, index));
    }
  }
  EXPECT_EQ(seen.size(), 20u * 5 * 100);
}

// The number was computed once by a separate program in Python.
TEST(DeriveSeedTest, StaysTheSameBetweenVersions) {
  const std::uint64_t seed = 3649905550453979348;
  EXPECT_EQ(DeriveSeed(seed, "parameters"), DeriveSeed(seed, "parameters", 0));
  EXPECT_EQ(DeriveSeed(seed, "parameters", 3), 15095147786822776676u);
}

// Flipping one input bit flips each output bit with probability 1/2: 64 x 64 trials, a binomial of standard
// deviation 32 about 2048; six of them are exceeded once in 10^9.
TEST(DeriveSeedTest, OneBitOfTheIndexChangesHalfOfTheOutput) {
  int flipped = 0;
  for (int bit = 0; bit < 64; ++bit) {
    flipped += std::popcount(DeriveSeed(7, "x", 5) ^ DeriveSeed(7, "x", 5 ^ (std::uint64_t{1} << bit)));
  }
  EXPECT_NEAR(flipped, 2048, 6 * 32);
}

// Streams of neighbouring indices are uncorrelated: the mean product of n centred uniforms has standard
// deviation 1 / (12 sqrt(n)).
TEST(DeriveSeedTest, NeighbouringStreamsAreUncorrelated) {
  constexpr int kDraws = 100000;
  RandomStream a(DeriveSeed(1, "rank", 0)), b(DeriveSeed(1, "rank", 1));
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) sum += (a.Uniform() - 0.5) * (b.Uniform() - 0.5);
  EXPECT_NEAR(sum / kDraws, 0, 6 / (12 * std::sqrt(kDraws)));
}

TEST(RandomStreamTest, BelowIsUniformAndInRange) {
  constexpr int kBins = 6, kDraws = 60000;
  std::array<int, kBins> counts{};
  RandomStream stream(3);
  for (int i = 0; i < kDraws; ++i) counts.at(stream.Below(kBins)) += 1;
  for (const int count : counts) EXPECT_NEAR(count, kDraws / kBins, 6 * std::sqrt(kDraws / kBins));
  EXPECT_EQ(stream.Below(1), 0u);
}

// With bound 3 * 2^62 a plain modulo or scaling without rejection makes a third of the values twice as
// likely.
TEST(RandomStreamTest, BelowHasNoBiasForHugeBounds) {
  constexpr int kDraws = 30000;
  const std::uint64_t third = std::uint64_t{1} << 62;
  std::array<int, 3> counts{}, phases{};
  RandomStream stream(4);
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t value = stream.Below(3 * third);
    counts.at(value / third) += 1;
    phases.at(value % 3) += 1;
  }
  for (const int count : counts) EXPECT_NEAR(count, kDraws / 3, 6 * std::sqrt(kDraws / 3));
  for (const int count : phases) EXPECT_NEAR(count, kDraws / 3, 6 * std::sqrt(kDraws / 3));
}

TEST(RandomStreamTest, NormalHasUnitMoments) {
  constexpr int kDraws = 100000;
  RandomStream stream(5);
  double sum = 0, squares = 0, fourth = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = stream.Normal();
    sum += x, squares += x * x, fourth += x * x * x * x;
  }
  // Variances of x, x^2 and x^4 under the standard normal: 1, 2, 96.
  EXPECT_NEAR(sum / kDraws, 0, 6 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 1, 6 * std::sqrt(2.0 / kDraws));
  EXPECT_NEAR(fourth / kDraws, 3, 6 * std::sqrt(96.0 / kDraws));
}

// All 24 orders of four values, 1000 expected of each.
TEST(ShuffleTest, EveryOrderEquallyLikely) {
  std::vector<int> counts(256);
  RandomStream stream(6);
  for (int trial = 0; trial < 24000; ++trial) {
    std::array<int, 4> values = {0, 1, 2, 3};
    Shuffle(stream, absl::MakeSpan(values));
    counts[values[0] * 64 + values[1] * 16 + values[2] * 4 + values[3]] += 1;
  }
  int orders = 0;
  for (const int count : counts) {
    if (count == 0) continue;
    ++orders;
    EXPECT_NEAR(count, 1000, 6 * std::sqrt(1000));
  }
  EXPECT_EQ(orders, 24);
}

TEST(RandomStreamTest, StateContinuesTheStream) {
  RandomStream stream(8);
  stream();
  RandomStream again(stream.state());
  EXPECT_EQ(stream(), again());
}

}  // namespace
}  // namespace plait::base
