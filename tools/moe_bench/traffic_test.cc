// Rows, blocks and bytes of small cases, counted by hand.
#include "tools/moe_bench/traffic.h"

#include <gtest/gtest.h>

#include <vector>

namespace plait::moe_bench {
namespace {

using moe::Census;
using moe::ExpertPlacement;

TEST(SentRows, ATokenTravelsOnceToARank) {
  // Experts 0, 1 on rank 0, 2, 3 on rank 1, 4, 5 on rank 2.
  const ExpertPlacement home(3, 6);
  const std::vector<std::int64_t> ids = {0,  1,   // both on rank 0
                                         2,  3,   // both on rank 1
                                         2,  4,   // on 1 and 2
                                         -1, 5,   // one was dropped
                                         -1, -1,  // none
                                         1,  2};
  EXPECT_EQ(SentRows(home, 0, ids, 2), 0 + 1 + 2 + 1 + 0 + 1);
  EXPECT_EQ(SentRows(home, 1, ids, 2), 1 + 0 + 1 + 1 + 0 + 1);
  EXPECT_EQ(SentRows(home, 2, ids, 2), 1 + 1 + 1 + 0 + 0 + 2);
}

TEST(SentRows, SharesAreUsedInOrder) {
  ExpertPlacement placement(2, 2);  // expert 0 on rank 0, 1 on rank 1
  placement.AddReplica(1, 0);
  // Of the three rows of rank 0 to expert 1 the first stays, the others go home.
  placement.SetShares(0, 1, {{.rank = 0, .slot = 1, .rows = 1}, {.rank = 1, .slot = 0, .rows = 2}});
  EXPECT_EQ(SentRows(placement, 0, std::vector<std::int64_t>{1, 0, 1, 1}, 1), 2);
  EXPECT_EQ(SentRows(placement, 0, std::vector<std::int64_t>{1, 0}, 1), 0);
}

TEST(Blocks, AreCutFromEachSourceAndSlot) {
  // Rank 0 sends 64 rows to expert 0 and 65 to expert 1; rank 1 sends 1 and 0.
  const Census census(2, 2, {64, 65, 1, 0});
  const ExpertPlacement home(2, 2);
  EXPECT_EQ(BlocksOf(home, census, 0).all, 1 + 1);
  EXPECT_EQ(BlocksOf(home, census, 0).remote, 1);
  EXPECT_EQ(BlocksOf(home, census, 1).all, 2);
  EXPECT_EQ(BlocksOf(home, census, 1).remote, 2);
  ExpertPlacement shared(2, 2);
  shared.AddReplica(1, 0);
  shared.SetShares(0, 1, {{.rank = 0, .slot = 1, .rows = 33}, {.rank = 1, .slot = 0, .rows = 32}});
  EXPECT_EQ(BlocksOf(shared, census, 0).all, 1 + 1 + 1);
  EXPECT_EQ(BlocksOf(shared, census, 0).remote, 1);
  EXPECT_EQ(BlocksOf(shared, census, 1).all, 1);
  EXPECT_EQ(BlocksOf(shared, census, 1).remote, 1);
}

TEST(Traffic, OfPublishedSizes) {
  // 8192 tokens for two of 32 experts on 4 ranks, balanced, without replicas: 12288 of 16384 rows leave each rank. In
  // half precision a pass is 12288 * 1024 * 2 = 25.2 MB per rank, and there are four.
  const Traffic traffic = TrafficOf({.ranks = 4,
                                     .chunks = 1,
                                     .experts = 32,
                                     .sent_rows = 4 * 12288,
                                     .remote_rows = 4 * 12288,
                                     .row_bytes = 2048});
  EXPECT_EQ(traffic.rows, 4 * 4 * 25165824LL);
  // Each of 12 pairs: 34 counts of 4 bytes and two of 8; each row and expert: 12 bytes, a weight and its gradient of 4 each.
  EXPECT_EQ(traffic.places, 12 * (34 * 4 + 16) + 4 * 12288 * (12 + 8));
  EXPECT_EQ(traffic.replicas, 0);
  EXPECT_EQ(traffic.total(), traffic.rows + traffic.places);
}

TEST(Traffic, OfReplicasChunksAndModes) {
  const TrafficFacts facts = {.ranks = 2,
                              .chunks = 3,
                              .experts = 4,
                              .sent_rows = 10,
                              .remote_rows = 11,
                              .row_bytes = 100,
                              .gate_learns = false,
                              .weight_bytes = 8,
                              .replicas = 5,
                              .expert_bytes = 1000};
  EXPECT_EQ(TrafficOf(facts).rows, 4000);
  EXPECT_EQ(TrafficOf(facts).places, 2 * (6 * 4 + 3 * 16) + 11 * (12 + 8));
  EXPECT_EQ(TrafficOf(facts).replicas, 2 * 5 * 1000);
  TrafficFacts dispatch = facts;
  dispatch.has_experts = false;
  EXPECT_EQ(TrafficOf(dispatch).rows, 4000);
  EXPECT_EQ(TrafficOf(dispatch).places, 2 * (6 * 4 + 3 * 16) + 11 * 12);
  EXPECT_EQ(TrafficOf(dispatch).replicas, 0);
  TrafficFacts alone = facts;
  alone.ranks = 1;
  EXPECT_EQ(TrafficOf(alone).total(), 0);
}

}  // namespace
}  // namespace plait::moe_bench
