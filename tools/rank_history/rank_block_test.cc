#include "tools/rank_history/rank_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace plait::rank_history {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNan;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// What comm does: the numbers of all blocks one after the other, once their news are known to all.
GatheredBlock Exchange(std::vector<RankBlock>& blocks) {
  std::vector<std::string> news;
  for (const RankBlock& block : blocks) news.push_back(block.News());
  GatheredBlock gathered{.ranks = static_cast<int>(blocks.size()), .draws = blocks[0].draws()};
  for (RankBlock& block : blocks) {
    EXPECT_TRUE(block.Agree(news).ok());
    block.AppendNumbers(gathered.numbers);
    block.Clear();
  }
  return gathered;
}

std::map<std::string, double> Scalars(const ReducedDraw& reduced) {
  std::map<std::string, double> values;
  for (const data::Scalar& scalar : reduced.scalars) {
    EXPECT_TRUE(values.emplace(std::string(scalar.name), scalar.value).second) << scalar.name << " twice";
  }
  return values;
}

// 1, 2, 4, 9: mean 4, squares of the differences 9 + 4 + 0 + 25 = 38.
TEST(RankBlock, StatisticsOverRanks) {
  std::vector<RankBlock> blocks(4);
  const double values[] = {2, 9, 1, 4};
  for (int rank = 0; rank < 4; ++rank) {
    ASSERT_TRUE(blocks[rank].Declare({"dt", "s", "time"}, RankStatistics::kEachRank).ok());
    ASSERT_TRUE(blocks[rank].Declare({"iter"}, RankStatistics::kRankZero).ok());
    ASSERT_TRUE(blocks[rank].AddDraw({{"dt", values[rank]}, {"iter", 10.0 + rank}}).ok());
  }
  const GatheredBlock gathered = Exchange(blocks);
  const ReducedDraw& reduced = blocks[0].Reduce(gathered, 0);
  EXPECT_THAT(Scalars(reduced),
              ElementsAre(std::pair("dt", 4.0), std::pair("dt_max", 9.0), std::pair("dt_min", 1.0),
                          std::pair("dt_std", std::sqrt(9.5)), std::pair("iter", 10.0)));
  ASSERT_EQ(reduced.vectors.size(), 1u);
  EXPECT_EQ(reduced.vectors[0].name, "dt_per_rank");
  EXPECT_THAT(reduced.vectors[0].values, ElementsAre(2, 9, 1, 4));
  const std::vector<data::Metric> metrics = blocks[0].MetricsToDeclare(0, 4);
  ASSERT_EQ(metrics.size(), 6u);
  EXPECT_EQ(metrics[3].name, "dt_std");
  EXPECT_EQ(metrics[3].units, "s");
  EXPECT_EQ(metrics[3].statistic, "standard deviation over ranks");
  EXPECT_EQ(metrics[4].dimension, "rank");
  EXPECT_EQ(metrics[4].length, 4);
}

// Equal large numbers: a one-pass formula would give a deviation of rounding errors, or of NaN.
TEST(RankBlock, DeviationOfNearlyEqualNumbers) {
  const std::vector<double> values = {1e9 + 1, 1e9 + 2, 1e9 + 3};
  EXPECT_DOUBLE_EQ(StatisticsOver(values).deviation, std::sqrt(2.0 / 3.0));
  EXPECT_EQ(StatisticsOver({values[0]}).deviation, 0);
}

TEST(RankBlock, NanAndInfinityShowInAllStatistics) {
  for (const std::vector<double>& values :
       {std::vector<double>{kNaN, 1, 2}, std::vector<double>{1, kNaN, 2}, std::vector<double>{1, 2, kNaN}}) {
    const Statistics statistics = StatisticsOver(values);
    EXPECT_THAT(statistics.mean, IsNan());
    EXPECT_THAT(statistics.minimum, IsNan());
    EXPECT_THAT(statistics.maximum, IsNan());
    EXPECT_THAT(statistics.deviation, IsNan());
  }
  const Statistics statistics = StatisticsOver({1.0, kInf});
  EXPECT_EQ(statistics.mean, kInf);
  EXPECT_EQ(statistics.minimum, 1);
  EXPECT_EQ(statistics.maximum, kInf);
  EXPECT_THAT(statistics.deviation, IsNan());
}

TEST(RankBlock, MetricsThatSomeRanksLackCountOverTheOthers) {
  std::vector<RankBlock> blocks(3);
  ASSERT_TRUE(blocks[0].AddDraw({{"loss", 1}}).ok());
  ASSERT_TRUE(blocks[1].AddDraw({{"extra", 5}, {"loss", kNaN}}).ok());
  ASSERT_TRUE(blocks[2].Declare({"extra", "m", "of rank 2"}, RankStatistics::kEachRank).ok());
  ASSERT_TRUE(blocks[2].AddDraw({}).ok());
  ASSERT_TRUE(blocks[0].AddDraw({}).ok());
  ASSERT_TRUE(blocks[1].AddDraw({{"extra", 7}}).ok());
  ASSERT_TRUE(blocks[2].AddDraw({{"extra", 9}, {"loss", 4}}).ok());
  const GatheredBlock gathered = Exchange(blocks);
  auto first = Scalars(blocks[0].Reduce(gathered, 0));
  EXPECT_THAT(first["loss"], IsNan()) << "a NaN that was given counts";
  EXPECT_EQ(first["extra"], 5);
  EXPECT_EQ(first["extra_std"], 0);
  auto second = Scalars(blocks[0].Reduce(gathered, 1));
  EXPECT_EQ(second["extra"], 8);
  EXPECT_EQ(second["loss"], 4);
  EXPECT_EQ(blocks[0].agreed()[1].over, RankStatistics::kStatistics) << "the lowest rank that has it decides";
}

TEST(RankBlock, LateMetricsJoinInTheSameOrderOnAllRanks) {
  std::vector<RankBlock> blocks(2);
  ASSERT_TRUE(blocks[0].AddDraw({{"a", 1}}).ok());
  ASSERT_TRUE(blocks[1].AddDraw({{"a", 3}}).ok());
  EXPECT_EQ(Scalars(blocks[0].Reduce(Exchange(blocks), 0)).at("a"), 2);
  EXPECT_EQ(blocks[0].News(), "");
  // Rank 0 names b first, rank 1 names c first: rank 0's order holds.
  ASSERT_TRUE(blocks[0].AddDraw({{"b", 10}, {"c", 20}, {"a", 0}}).ok());
  ASSERT_TRUE(blocks[1].AddDraw({{"c", 40}}).ok());
  const GatheredBlock gathered = Exchange(blocks);
  for (RankBlock& block : blocks) {
    auto values = Scalars(block.Reduce(gathered, 0));
    EXPECT_EQ(values["a"], 0);
    EXPECT_EQ(values["b"], 10);
    EXPECT_EQ(values["c"], 30);
  }
  // Rank 1 names b only now: the ranks know it already.
  ASSERT_TRUE(blocks[0].AddDraw({{"b", 1}}).ok());
  ASSERT_TRUE(blocks[1].AddDraw({{"b", 2}}).ok());
  EXPECT_EQ(Scalars(blocks[1].Reduce(Exchange(blocks), 0)).at("b"), 1.5);
  EXPECT_EQ(blocks[1].agreed().size(), 3u);
}

TEST(RankBlock, NamesThatCollideAreRefused) {
  RankBlock block;
  ASSERT_TRUE(block.AddDraw({{"dt", 1}, {"dt_min", 1}}).ok());
  const absl::Status status = block.Agree({block.News()});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"dt_min\""));
  EXPECT_FALSE(RankBlock().Declare({"rank"}, RankStatistics::kStatistics).ok());
  EXPECT_FALSE(RankBlock().AddDraw({{"a b", 1}}).ok());
}

}  // namespace
}  // namespace plait::rank_history
