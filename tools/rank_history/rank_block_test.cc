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

// One block per rank.
std::vector<RankBlock> Blocks(int ranks, const std::vector<RankColumn>& columns) {
  const absl::StatusOr<RankBlock> block = RankBlock::Make(columns);
  EXPECT_TRUE(block.ok()) << block.status();
  return std::vector<RankBlock>(ranks, *block);
}

// Stands for the all-gather: concatenates the numbers of all blocks.
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
      Blocks(4, {{{"dt", "s", "time"}, RankStatistics::kEachRank}, {data::Count("iter", "step")}});
  const double values[] = {2, 9, 1, 4};
  for (int rank = 0; rank < 4; ++rank) {
    ASSERT_TRUE(blocks[rank].AddDraw({{"dt", values[rank]}, {"iter", 10.0 + rank}}).ok());
  }
  const GatheredBlock gathered = Exchange(blocks);
  const ReducedDraw& reduced = blocks[0].Reduce(gathered, 0);
  EXPECT_THAT(Scalars(reduced), ElementsAre(std::pair("dt", 2.0), std::pair("dt_max", 9.0),
                                            std::pair("dt_mean", 4.0), std::pair("dt_min", 1.0),
                                            std::pair("dt_std", std::sqrt(9.5)), std::pair("iter", 10.0)))
      << "under its own name what rank 0 prints";
  ASSERT_EQ(reduced.vectors.size(), 1u);
  EXPECT_EQ(reduced.vectors[0].name, "dt_per_rank");
  EXPECT_THAT(reduced.vectors[0].values, ElementsAre(2, 9, 1, 4));
  const std::vector<data::Metric> metrics = blocks[0].Metrics(4);
  ASSERT_EQ(metrics.size(), 7u);
  EXPECT_EQ(metrics[0].statistic, "value of rank 0");
  EXPECT_EQ(metrics[4].name, "dt_std");
  EXPECT_EQ(metrics[4].units, "s");
  EXPECT_EQ(metrics[4].statistic, "standard deviation over ranks");
  EXPECT_EQ(metrics[5].dimension, "rank");
  EXPECT_EQ(metrics[5].length, 4);
  EXPECT_TRUE(metrics[6].integer);
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

const std::vector<RankColumn>& WithLoad() {
  static const auto& columns =
      *new std::vector<RankColumn>{{{"loss"}, RankStatistics::kStatistics},
                                   {{.name = "load", .units = "1", .dimension = "expert", .length = 3}},
                                   {{"iter"}}};
  return columns;
}

// Stages of a pipeline: rank 0 has no such layer, ranks 1 and 2 have; columns after a vector keep their place.
TEST(RankBlock, AVectorIsThatOfTheFirstRankThatGaveIt) {
  std::vector<RankBlock> blocks = Blocks(3, WithLoad());
  const std::vector<double> one = {kNaN, 5, 6}, two = {7, 8, 9};
  ASSERT_TRUE(blocks[0].AddDraw({{"loss", 1}, {"iter", 10}}).ok());
  ASSERT_TRUE(blocks[1].AddDraw({{"loss", 3}, {"iter", 11}}, {{"load", one}}).ok());
  ASSERT_TRUE(blocks[2].AddDraw({{"loss", 5}, {"iter", 12}}, {{"load", two}}).ok());
  for (int rank = 0; rank < 2; ++rank) ASSERT_TRUE(blocks[rank].AddDraw({{"iter", 20}}).ok());
  ASSERT_TRUE(blocks[2].AddDraw({}, {{"load", {1.0, 2.0, 4.0}}}).ok());
  for (RankBlock& block : blocks) ASSERT_TRUE(block.AddDraw({{"iter", 30}}).ok());
  const GatheredBlock gathered = Exchange(blocks);
  const ReducedDraw& reduced = blocks[0].Reduce(gathered, 0);
  ASSERT_EQ(reduced.vectors.size(), 1u);
  EXPECT_EQ(reduced.vectors[0].name, "load");
  EXPECT_THAT(reduced.vectors[0].values, ElementsAre(IsNan(), 5, 6)) << "a NaN that was given counts";
  EXPECT_EQ(Scalars(reduced)["loss"], 3);
  EXPECT_EQ(Scalars(reduced)["iter"], 10);
  EXPECT_THAT(blocks[0].Reduce(gathered, 1).vectors[0].values, ElementsAre(1, 2, 4));
  EXPECT_TRUE(blocks[0].Reduce(gathered, 2).vectors.empty()) << "given by nobody";
  EXPECT_EQ(Scalars(blocks[0].Reduce(gathered, 2))["iter"], 30);
  const std::vector<data::Metric> metrics = blocks[0].Metrics(3);
  ASSERT_EQ(metrics.size(), 6u);
  EXPECT_EQ(metrics[4].dimension, "expert");
  EXPECT_EQ(metrics[4].length, 3);
  EXPECT_EQ(metrics[4].statistic, "value of the first rank that has it");
}

TEST(RankBlock, AVectorOfAnotherLengthIsAnErrorAndTheDrawGoesOn) {
  for (const bool as_number : {false, true}) {
    std::vector<RankBlock> blocks = Blocks(1, WithLoad());
    const absl::Status status = as_number ? blocks[0].AddDraw({{"load", 1}, {"iter", 4}})
                                          : blocks[0].AddDraw({{"iter", 4}}, {{"load", {1.0, 2.0}}});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), as_number ? "\"load\": 1 values were given, but it has 3"
                                          : "\"load\": 2 values were given, but it has 3");
    const GatheredBlock gathered = Exchange(blocks);
    EXPECT_THAT(Scalars(blocks[0].Reduce(gathered, 0)), ElementsAre(std::pair("iter", 4.0)));
    EXPECT_TRUE(blocks[0].Reduce(gathered, 0).vectors.empty());
  }
  std::vector<RankBlock> blocks = Blocks(1, WithLoad());
  EXPECT_FALSE(blocks[0].AddDraw({}, {{"iter", {1.0, 2.0}}}).ok());
  EXPECT_FALSE(blocks[0].AddDraw({}, {{"lost", {1.0}}}).ok());
}

// The file of a run on two ranks; "late" is not in it yet.
TEST(RankBlock, VectorsOverAnotherNumberOfRanksAreKeptApart) {
  const std::vector<data::Metric> held = {{"loss"},
                                          {.name = "dt_per_rank", .dimension = "rank", .length = 2}};
  for (const int ranks : {2, 4}) {
    RankBlock block = Blocks(
        1, {{{"loss"}}, {{"dt"}, RankStatistics::kEachRank}, {{"late"}, RankStatistics::kEachRank}})[0];
    block.KeepApart(held, ranks);
    std::vector<std::string> vectors;
    for (const data::Metric& metric : block.Metrics(ranks)) {
      if (metric.length > 0) vectors.push_back(metric.name + " " + metric.dimension);
    }
    const std::string of = ranks == 2 ? "" : "_of_4";
    EXPECT_THAT(vectors, ElementsAre("dt_per_rank" + of + " rank" + of, "late_per_rank" + of + " rank" + of));
  }
}

std::string ErrorOf(const std::vector<RankColumn>& columns) {
  return std::string(RankBlock::Make(columns).status().message());
}

TEST(RankBlock, NamesThatCannotBeAreRefused) {
  EXPECT_EQ(ErrorOf({{{"dt"}}, {{"dt_min"}}}), "") << "no statistics of a number of rank 0";
  EXPECT_THAT(ErrorOf({{{"dt"}, RankStatistics::kStatistics}, {{"dt_min"}}}), HasSubstr("\"dt_min\""));
  EXPECT_EQ(ErrorOf({{{"dt"}, RankStatistics::kStatistics}, {{"dt_mean"}}}), "") << "the mean is dt";
  EXPECT_THAT(ErrorOf({{{"dt"}, RankStatistics::kEachRank}, {{"dt_mean"}}}), HasSubstr("\"dt_mean\""));
  EXPECT_THAT(ErrorOf({{{"dt"}}, {{"dt"}}}), HasSubstr("\"dt\""));
  EXPECT_THAT(ErrorOf({{{"rank"}}}), HasSubstr("\"rank\""));
  EXPECT_THAT(ErrorOf({{{"a b"}}}), HasSubstr("\"a b\""));
  for (const RankStatistics over : {RankStatistics::kStatistics, RankStatistics::kEachRank}) {
    EXPECT_THAT(ErrorOf({{{.name = "load", .length = 2}, over}}), HasSubstr("no statistics over ranks"));
  }
  EXPECT_THAT(ErrorOf({{{.name = "load", .length = -1}}}), HasSubstr("a vector of -1"));
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
