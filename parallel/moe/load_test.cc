// Metrics against numbers worked out by hand.
#include "parallel/moe/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace plait::moe {
namespace {

using ::testing::ElementsAre;

// Homes 0 1 | 2 3; 100 rows; expert 3 has none.
Census TwoRanks() { return {2, 4, {10, 20, 30, 0, 5, 5, 30, 0}}; }

TEST(LoadTest, RanksAtHome) {
  EXPECT_THAT(LoadOfRanks(TwoRanks(), ExpertPlacement(2, 4)),
              ElementsAre(RankLoad{.rows = 40, .sent_rows = 30, .received_rows = 10},
                          RankLoad{.rows = 60, .sent_rows = 10, .received_rows = 30}));
}

TEST(LoadTest, RanksWithReplicas) {
  ExpertPlacement placement(2, 4);
  placement.AddReplica(2, 0);
  placement.AddReplica(3, 0);
  placement.SetShares(0, 2, {{0, 2, 12}, {1, 0, 18}});
  placement.SetShares(1, 2, {{1, 0, 29}, {0, 2, 1}});
  EXPECT_THAT(
      LoadOfRanks(TwoRanks(), placement),
      ElementsAre(RankLoad{.rows = 53, .sent_rows = 18, .received_rows = 11, .replicas = 2},
                  RankLoad{.rows = 47, .sent_rows = 11, .received_rows = 18, .replicas_of_its_experts = 2}));
  const LoadReport report = ReportLoad(TwoRanks(), placement);
  EXPECT_DOUBLE_EQ(report.overload_factor, 1.06);
  EXPECT_EQ(report.remote_rows, 29);
  EXPECT_EQ(report.replicas, 2);
  EXPECT_EQ(ReplicaBytes(report.replicas, 1000), 4000);
}

TEST(LoadTest, Report) {
  const LoadReport report = ReportLoad(TwoRanks(), ExpertPlacement(2, 4));
  EXPECT_EQ(report.rows, 100);
  EXPECT_DOUBLE_EQ(report.overload_factor, 1.2);
  EXPECT_DOUBLE_EQ(report.balancedness, 50.0 / 60);
  EXPECT_DOUBLE_EQ(report.max_violation, 60.0 / 25 - 1);
  EXPECT_EQ(report.dead_experts, 1);
  EXPECT_EQ(report.remote_rows, 40);
  EXPECT_EQ(report.replicas, 0);
  // Shares .15 .25 .6: exp(H) is the product of p^-p.
  EXPECT_NEAR(report.diversity, std::pow(.15, -.15) * std::pow(.25, -.25) * std::pow(.6, -.6) / 4, 1e-15);
}

TEST(LoadTest, EqualExperts) {
  const LoadReport report = ReportLoad(Census(2, 4, {1, 2, 3, 4, 4, 3, 2, 1}), ExpertPlacement(2, 4));
  EXPECT_EQ(report.overload_factor, 1);
  EXPECT_EQ(report.max_violation, 0);
  EXPECT_NEAR(report.diversity, 1, 1e-15);
}

TEST(LoadTest, NoRows) {
  const LoadReport report = ReportLoad(Census(2, 4), ExpertPlacement(2, 4));
  EXPECT_EQ(report.overload_factor, 1);
  EXPECT_EQ(report.balancedness, 1);
  EXPECT_EQ(report.max_violation, 0);
  EXPECT_EQ(report.diversity, 0);
  EXPECT_EQ(report.dead_experts, 4);
}

TEST(LoadTest, RanksWithoutExperts) {
  // Homes: none | 0 | none | 1.
  const Census census(4, 2, {4, 0, 0, 0, 1, 1, 2, 0});
  const LoadReport report = ReportLoad(census, ExpertPlacement(4, 2));
  EXPECT_DOUBLE_EQ(report.overload_factor, 3.5);
  EXPECT_EQ(report.remote_rows, 8);
}

}  // namespace
}  // namespace plait::moe
