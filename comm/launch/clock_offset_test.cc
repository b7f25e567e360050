#include "comm/launch/clock_offset.h"

#include <gtest/gtest.h>

#include <cmath>

#include "comm/testing/world.h"

namespace plait::comm {
namespace {

using testing::World;

// Each rank's clock is wrong by 100 s times its rank: the measurement finds that within its own uncertainty
// (and within what a double of 2e9 s can tell, 2.4e-7 s, a few times over).
TEST(MeasureClockOffsets, FindsClocksThatAreWrong) {
  const auto offsets = MeasureClockOffsets(World(), [] { return WallClockSeconds() + 100 * World().rank(); });
  ASSERT_EQ(offsets.size(), static_cast<std::size_t>(World().size()));
  for (int rank = 0; rank < World().size(); ++rank) {
    EXPECT_LE(std::abs(offsets[rank].seconds - 100 * rank), offsets[rank].uncertainty_seconds + 1e-6) << rank;
    // Half of the fastest of 20 round trips on one machine; far above it even where 4 ranks share a core.
    EXPECT_LT(offsets[rank].uncertainty_seconds, 10);
  }
  EXPECT_EQ(offsets[0].seconds, 0);
}

TEST(MeasureClockOffsets, TheFastestExchangeCounts) {
  // A clock that jumps ahead within the first exchange of rank 0 makes that exchange look slow.
  int calls = 0;
  const auto offsets = MeasureClockOffsets(World(), [&] {
    ++calls;
    return WallClockSeconds() + (World().rank() == 0 && calls == 1 ? -50.0 : 0.0);
  });
  for (const ClockOffset& offset : offsets)
    EXPECT_LT(std::abs(offset.seconds), offset.uncertainty_seconds + 1e-6);
}

}  // namespace
}  // namespace plait::comm
