// Against numbers worked out by hand from nccl-tests' definitions.
#include "tools/collectives_sweep/bandwidth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/collectives_sweep/sweep.h"
#include "tools/collectives_sweep/table.h"

namespace plait::collectives_sweep {
namespace {

using ::testing::ElementsAre;

TEST(BusFactor, OfFourRanks) {
  EXPECT_DOUBLE_EQ(BusFactor(Swept::kAllReduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(BusFactor(Swept::kReduce, 4), 1);
  EXPECT_DOUBLE_EQ(BusFactor(Swept::kBroadcast, 4), 1);
  EXPECT_DOUBLE_EQ(BusFactor(Swept::kAllGather, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusFactor(Swept::kReduceScatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusFactor(Swept::kAllToAll, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusFactor(Swept::kGather, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusFactor(Swept::kScatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusFactor(Swept::kSendRecv, 4), 1);
  EXPECT_DOUBLE_EQ(BusFactor(Swept::kBarrier, 4), 0);
  EXPECT_DOUBLE_EQ(BusFactor(Swept::kAllReduce, 1), 0);
  EXPECT_DOUBLE_EQ(BusFactor(Swept::kAllReduce, 8), 1.75);
}

// 1 MiB all-reduced by 8 ranks in 100 us: 10.48576 GB/s by the algorithm, 7/4 of it on the bus.
TEST(Row, BandwidthsOfOneMebibyte) {
  const Row row = {.operation = Swept::kAllReduce,
                   .ranks = 8,
                   .message = {1 << 20, 1 << 18},
                   .seconds = {1e-4, 9e-5, 2e-4}};
  EXPECT_DOUBLE_EQ(row.algorithm_bandwidth(), 1.048576e10);
  EXPECT_DOUBLE_EQ(row.bus_bandwidth(), 1.835008e10);
  EXPECT_EQ(Line(row),
            "     1048576        262144     f32     sum    -1   100.00    90.00   200.00     10.5     18.4   "
            "    0");
}

TEST(SizeOf, IsWholeElementsAndParts) {
  const auto size = [](Swept operation, std::int64_t bytes, int ranks) {
    const MessageSize s = SizeOf(operation, bytes, 4, ranks);
    return std::vector<std::int64_t>{s.bytes, s.count};
  };
  EXPECT_THAT(size(Swept::kAllReduce, 1024, 3), ElementsAre(1024, 256));
  EXPECT_THAT(size(Swept::kAllReduce, 1, 3), ElementsAre(4, 1));
  EXPECT_THAT(size(Swept::kAllGather, 1024, 3), ElementsAre(1020, 85));  // 3 parts of 85 elements
  EXPECT_THAT(size(Swept::kAllGather, 8, 4), ElementsAre(16, 1));
  EXPECT_THAT(size(Swept::kBarrier, 1024, 3), ElementsAre(0, 0));
}

TEST(Sizes, GoUpToTheLargest) {
  EXPECT_THAT(Sizes(8, 100, 4), ElementsAre(8, 32, 100));
  EXPECT_THAT(Sizes(8, 32, 2), ElementsAre(8, 16, 32));
  EXPECT_THAT(Sizes(8, 8, 2), ElementsAre(8));
}

}  // namespace
}  // namespace plait::collectives_sweep
