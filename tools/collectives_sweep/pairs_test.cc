// The schedule and the rule, on made-up matrices.
#include "tools/collectives_sweep/pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace plait::collectives_sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Tournament, EveryPairMeetsOnceAndNobodyTwiceInARound) {
  for (int n = 0; n <= 17; ++n) {
    std::set<std::pair<int, int>> met;
    for (const Round& round : Tournament(n)) {
      std::set<int> busy;
      for (const auto& [a, b] : round) {
        EXPECT_LT(a, b);
        EXPECT_TRUE(busy.insert(a).second && busy.insert(b).second) << n;
        EXPECT_TRUE(met.emplace(a, b).second) << n;
      }
    }
    EXPECT_EQ(met.size(), n * (n - 1) / 2) << n;
    EXPECT_EQ(Tournament(n).size(), n < 2 ? 0 : n - 1 + n % 2);
  }
}

// Latencies between 1 and 1.4 us, one message in 100 us; `hosts` of two ranks each, between them five times
// as slow.
PairMatrix Healthy(int n, bool two_per_host = false) {
  PairMatrix matrix = {.ranks = n, .message_bytes = 1000000};
  for (int a = 0; a < n; ++a) {
    matrix.hosts.push_back(two_per_host ? "host" + std::to_string(a / 2) : "host");
    for (int b = 0; b < n; ++b) {
      const double far = two_per_host && a / 2 != b / 2 ? 5 : 1;
      matrix.short_seconds.push_back(a == b ? 0 : far * (1e-6 + 0.1e-6 * ((a * b) % 5)));
      matrix.long_seconds.push_back(a == b ? 0 : far * 1e-4);
    }
  }
  return matrix;
}

void Slow(std::vector<double>& seconds, int n, int a, int b, double factor) {
  seconds[a * n + b] *= factor;
  seconds[b * n + a] *= factor;
}

TEST(SlowParts, NobodyInAHealthyMachine) {
  for (int n = 1; n <= 9; ++n) {
    EXPECT_THAT(SlowParts(Healthy(n), 2.5), IsEmpty()) << n;
    EXPECT_THAT(SlowParts(Healthy(n, true), 2.5), IsEmpty()) << n;
  }
}

TEST(SlowParts, NamesARankWhoseWholeRowIsSlow) {
  for (int n = 3; n <= 9; ++n) {
    for (int slow = 0; slow < n; ++slow) {
      PairMatrix matrix = Healthy(n);
      matrix.short_seconds.assign(matrix.short_seconds.size(), 1e-6);
      for (int other = 0; other < n; ++other) Slow(matrix.short_seconds, n, slow, other, 4.1);
      EXPECT_THAT(SlowParts(matrix, 2.5),
                  ElementsAre("rank " + std::to_string(slow) +
                              " (host) is slow: 4.1x the median latency with every partner"));
    }
  }
}

TEST(SlowParts, NamesALinkWhereOneEntryIsSlow) {
  for (int n = 3; n <= 9; ++n) {
    PairMatrix matrix = Healthy(n);
    matrix.short_seconds.assign(matrix.short_seconds.size(), 2e-6);
    Slow(matrix.short_seconds, n, 1, n - 1, 6);
    EXPECT_THAT(SlowParts(matrix, 2.5),
                ElementsAre("the link of ranks 1 (host) and " + std::to_string(n - 1) +
                            " (host) is slow: 6.0x the median latency"));
  }
}

TEST(SlowParts, NamesByBandwidthWhatLatencyDoesNotShow) {
  PairMatrix matrix = Healthy(5);
  for (int other = 0; other < 5; ++other) Slow(matrix.long_seconds, 5, 3, other, 3.2);
  EXPECT_THAT(SlowParts(matrix, 2.5),
              ElementsAre("rank 3 (host) is slow: 3.2x the median time of 1000000 bytes with every partner"));
  matrix = Healthy(5);
  Slow(matrix.long_seconds, 5, 0, 4, 7);
  EXPECT_THAT(
      SlowParts(matrix, 2.5),
      ElementsAre("the link of ranks 0 (host) and 4 (host) is slow: 7.0x the median time of 1000000 bytes"));
}

TEST(SlowParts, ComparesLinksOfHostsWithTheirLike) {
  PairMatrix matrix = Healthy(8, true);
  Slow(matrix.short_seconds, 8, 0, 5, 4);  // between hosts: 20 times a link within one
  EXPECT_EQ(SlowParts(matrix, 2.5).size(), 1);
  EXPECT_THAT(SlowParts(matrix, 2.5)[0],
              ::testing::StartsWith("the link of ranks 0 (host0) and 5 (host2) is slow"));
}

TEST(SlowParts, WhereCoresAreSharedAFewMicrosecondsMeanNothing) {
  PairMatrix matrix = Healthy(5);
  matrix.shares_cores = true;
  for (int other = 0; other < 5; ++other) Slow(matrix.short_seconds, 5, 2, other, 100);
  Slow(matrix.short_seconds, 5, 0, 1, 300);
  EXPECT_THAT(SlowParts(matrix, 2.5), IsEmpty());
  for (int other = 0; other < 5; ++other) Slow(matrix.short_seconds, 5, 2, other, 10);
  EXPECT_EQ(SlowParts(matrix, 2.5).size(), 1);
}

TEST(SlowParts, OneOfTwoRanksCannotBeToldFromTheOther) {
  PairMatrix matrix = Healthy(2);
  Slow(matrix.short_seconds, 2, 0, 1, 100);
  EXPECT_THAT(SlowParts(matrix, 2.5), IsEmpty());
}

}  // namespace
}  // namespace plait::collectives_sweep
