// Placements against homes and sums that are counted one expert at a time.
#include "parallel/moe/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plait::moe {
namespace {

using ::testing::ElementsAre;

TEST(CensusTest, Sums) {
  Census census(2, 3, {1, 2, 3, 40, 50, 60});
  EXPECT_EQ(census.at(1, 0), 40);
  EXPECT_EQ(census.OfExpert(2), 63);
  EXPECT_EQ(census.total(), 156);
  census.at(0, 2) = 7;
  EXPECT_EQ(census.OfExpert(2), 67);
  EXPECT_DEATH(Census(2, 3, {1, 2}), "2 numbers for 2 ranks and 3 experts");
}

TEST(ExpertPlacementTest, HomesAreConsecutiveAndAsEqualAsCanBe) {
  for (const int ranks : {1, 2, 3, 4, 7, 8, 64}) {
    for (const int experts : {1, 2, 3, 4, 5, 8, 32, 63, 256}) {
      const ExpertPlacement placement(ranks, experts);
      ASSERT_EQ(placement.ranks(), ranks);
      int next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(placement.first_home_expert(rank), next);
        EXPECT_GE(placement.home_experts(rank), experts / ranks);
        EXPECT_LE(placement.home_experts(rank), (experts + ranks - 1) / ranks);
        EXPECT_EQ(placement.replicas(rank), 0);
        int slot = 0;
        for (const int expert : placement.slots(rank)) {
          EXPECT_EQ(expert, next++);
          EXPECT_EQ(placement.home_rank(expert), rank);
          EXPECT_EQ(placement.SlotOf(expert, rank), slot++);
          EXPECT_EQ(placement.SlotOf(expert, (rank + 1) % ranks), ranks == 1 ? slot - 1 : -1);
        }
      }
      EXPECT_EQ(next, experts);
    }
  }
}

TEST(ExpertPlacementTest, MoreRanksThanExperts) {
  const ExpertPlacement placement(4, 2);
  EXPECT_THAT(placement.slots(0), ElementsAre());
  EXPECT_THAT(placement.slots(1), ElementsAre(0));
  EXPECT_THAT(placement.slots(2), ElementsAre());
  EXPECT_THAT(placement.slots(3), ElementsAre(1));
}

TEST(ExpertPlacementTest, ReplicasFollowHomeExpertsAndKeepTheirSlots) {
  ExpertPlacement placement(3, 7);  // homes 0 1 | 2 3 | 4 5 6
  placement.AddReplica(6, 0);
  placement.AddReplica(2, 0);
  EXPECT_THAT(placement.slots(0), ElementsAre(0, 1, 6, 2));
  EXPECT_EQ(placement.replicas(0), 2);
  EXPECT_EQ(placement.SlotOf(6, 0), 2);
  EXPECT_EQ(placement.SlotOf(2, 0), 3);
  EXPECT_EQ(placement.SlotOf(2, 1), 0);
  EXPECT_EQ(placement.SlotOf(2, 2), -1);
  EXPECT_EQ(placement.home_rank(6), 2);
  EXPECT_DEATH(placement.AddReplica(6, 0), "rank 0 has expert 6 already");
  EXPECT_DEATH(placement.AddReplica(6, 2), "rank 2 has expert 6 already");
  EXPECT_DEATH(placement.AddReplica(7, 2), "expert 7 on rank 2, of 7 on 3");
}

TEST(ExpertPlacementTest, RowsOfSlotsAddUp) {
  const Census census(2, 3, {10, 20, 30, 1, 2, 3});
  ExpertPlacement placement(2, 3);  // homes 0 | 1 2
  EXPECT_THAT(placement.RowsOfSlots(0, census), ElementsAre(11));
  EXPECT_THAT(placement.RowsOfSlots(1, census), ElementsAre(22, 33));
  placement.AddReplica(2, 0);
  EXPECT_THAT(placement.RowsOfSlots(0, census), ElementsAre(11, 0));
  placement.SetShares(0, 2, {{0, 1, 25}, {1, 1, 4}, {0, 1, 1}});
  EXPECT_THAT(placement.RowsOfSlots(0, census), ElementsAre(11, 26));
  EXPECT_THAT(placement.RowsOfSlots(1, census), ElementsAre(22, 7));
  EXPECT_DEATH(placement.RowsOfSlots(1, Census(2, 3)), "shares of another census: 30 of 0 rows from 0 to 2");
  EXPECT_DEATH(placement.SetShares(0, 2, {{0, 0, 30}}), "slot 0 of rank 0, which has it in 1");
  EXPECT_DEATH(placement.SetShares(0, 1, {{0, 1, 30}}), "which has it in -1");
  EXPECT_DEATH(placement.SetShares(0, 1, {{1, 0, 0}}), "0 rows for expert 1");
}

TEST(ExpertPlacementTest, EqualMeansSlotsAndShares) {
  ExpertPlacement a(2, 2), b(2, 2);
  EXPECT_EQ(a, b);
  a.AddReplica(0, 1);
  EXPECT_FALSE(a == b);
  b.AddReplica(0, 1);
  a.SetShares(0, 0, {{0, 0, 3}});
  EXPECT_FALSE(a == b);
  b.SetShares(0, 0, {{0, 0, 3}});
  EXPECT_EQ(a, b);
  EXPECT_FALSE(a == ExpertPlacement(2, 3));
  EXPECT_FALSE(ExpertPlacement(1, 2) == ExpertPlacement(2, 2));
}

}  // namespace
}  // namespace plait::moe
