#include "tools/rank_history/rank_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace plait::rank_history {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNan;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// A block of each of `ranks` ranks.
std::vector<RankBlock> Blocks(int ranks, const std::vector<RankColumn>& columns) {
  const absl::StatusOr<RankBlock> block = RankBlock::Make(columns);
  EXPECT_TRUE(block.ok()) << block.status();
  return std::vector<RankBlock>(ranks, *block);
}

// What comm does: the numbers of all blocks one after the other.
GatheredBlock Exchange(std::vector<RankBlock>& blocks) {
  GatheredBlock gathered{.ranks = static_cast<int>(blocks.size()), .draws = blocks[0].draws()};
  for (RankBlock& block : blocks) {
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
  std::vector<RankBlock> blocks =
      Blocks(4, {{{"dt", "s", "time"}, RankStatistics::kEachRank}, {{"iter"}, RankStatistics::kRankZero}});
  const double values[] = {2, 9, 1, 4};
  for (int rank = 0; rank < 4; ++rank) {
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
  const std::vector<data::Metric> metrics = blocks[0].Metrics(4);
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
  std::vector<RankBlock> blocks =
      Blocks(3, {{{"loss"}, RankStatistics::kStatistics}, {{"extra"}, RankStatistics::kStatistics}});
  ASSERT_TRUE(blocks[0].AddDraw({{"loss", 1}}).ok());
  ASSERT_TRUE(blocks[1].AddDraw({{"extra", 5}, {"loss", kNaN}}).ok());
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
  for (RankBlock& block : blocks) ASSERT_TRUE(block.AddDraw({}).ok());
  EXPECT_THAT(Scalars(blocks[0].Reduce(Exchange(blocks), 0)), ElementsAre()) << "given by nobody";
}

std::string ErrorOf(const std::vector<RankColumn>& columns) {
  return std::string(RankBlock::Make(columns).status().message());
}

TEST(RankBlock, NamesThatCannotBeAreRefused) {
  EXPECT_EQ(ErrorOf({{{"dt"}}, {{"dt_min"}}}), "") << "no statistics of a number of rank 0";
  EXPECT_THAT(ErrorOf({{{"dt"}, RankStatistics::kStatistics}, {{"dt_min"}}}), HasSubstr("\"dt_min\""));
  EXPECT_THAT(ErrorOf({{{"dt"}}, {{"dt"}}}), HasSubstr("\"dt\""));
  EXPECT_THAT(ErrorOf({{{"rank"}}}), HasSubstr("\"rank\""));
  EXPECT_THAT(ErrorOf({{{"a b"}}}), HasSubstr("\"a b\""));
}

TEST(RankBlock, AnUnknownNameIsAnErrorAndTheDrawGoesOn) {
  std::vector<RankBlock> blocks = Blocks(1, {{{"loss"}}});
  const absl::Status status = blocks[0].AddDraw({{"lost", 1}, {"loss", 2}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"lost\""));
  EXPECT_THAT(Scalars(blocks[0].Reduce(Exchange(blocks), 0)), ElementsAre(std::pair("loss", 2.0)));
}

}  // namespace
}  // namespace plait::rank_history
