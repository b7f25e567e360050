#include "tools/report_parts/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace plait::report {
namespace {

using ::testing::ElementsAre;

constexpr double kInf = std::numeric_limits<double>::infinity();

// Oracle: sort everything.
double SortedQuantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(std::floor(at));
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (values[high] - values[low]) * (at - std::floor(at));
}

std::vector<double> Random(std::size_t count, int kinds) {
  std::mt19937_64 random(count * 31 + kinds);
  std::vector<double> values(count);
  for (double& value : values) {
    // Few kinds: many ties. Many: heavy tails.
    value = kinds > 0 ? static_cast<double>(random() % kinds)
                      : std::exp(std::normal_distribution<>(0, 2)(random));
  }
  return values;
}

// The same two order statistics and the same formula on both sides, so they agree to the bit.
TEST(Summary, PercentilesAreThoseOfThePlainSort) {
  for (const int kinds : {0, 1, 3, 50}) {
    for (std::size_t count = 1; count <= 130; ++count) {
      const std::vector<double> values = Random(count, kinds);
      const Summary summary = Summarize(values);
      ASSERT_EQ(summary.median, SortedQuantile(values, 0.5)) << count;
      ASSERT_EQ(summary.p10, SortedQuantile(values, 0.1)) << count;
      ASSERT_EQ(summary.p90, SortedQuantile(values, 0.9)) << count;
      ASSERT_EQ(summary.min, SortedQuantile(values, 0)) << count;
      ASSERT_EQ(summary.max, SortedQuantile(values, 1)) << count;
      ASSERT_EQ(summary.last, values.back());
    }
  }
  const std::vector<double> many = Random(20001, 0);
  EXPECT_EQ(Summarize(many).p90, SortedQuantile(many, 0.9));
}

// Of 1 .. 5, by hand, as numpy.percentile gives them.
TEST(Summary, ByHand) {
  const Summary summary = Summarize({5, 1, 4, 2, 3});
  EXPECT_EQ(summary.median, 3);
  EXPECT_DOUBLE_EQ(summary.p10, 1.4);
  EXPECT_DOUBLE_EQ(summary.p90, 4.6);
  EXPECT_EQ(summary.mean, 3);
  EXPECT_EQ(summary.sum(), 15);
  EXPECT_EQ(summary.last, 3);
  EXPECT_THAT(summary.block_medians, ElementsAre(5, 1, 4, 2, 3));
}

TEST(Summary, WhatIsNotFiniteIsCountedAndLeftOut) {
  const Summary summary = Summarize({kNaN, kNaN, 1, kInf, kNaN, 3, -kInf, -kInf, kNaN});
  EXPECT_EQ(summary.draws, 9);
  EXPECT_EQ(summary.finite, 2);
  EXPECT_EQ(summary.nan, 4);
  EXPECT_EQ(summary.positive_infinities, 1);
  EXPECT_EQ(summary.negative_infinities, 2);
  EXPECT_EQ(summary.inner_nan(), 1);
  EXPECT_EQ(summary.first_place, 2);
  EXPECT_EQ(summary.last_place, 7);
  EXPECT_EQ(summary.mean, 2);
  EXPECT_EQ(summary.last, -kInf);
  EXPECT_FALSE(summary.sparse());
  const Summary none = Summarize({kNaN, kNaN});
  EXPECT_EQ(none.finite, 0);
  EXPECT_EQ(none.last_place, -1);
  EXPECT_TRUE(std::isnan(none.median) && std::isnan(none.max) && std::isnan(none.mean));
  EXPECT_FALSE(none.sparse());
  EXPECT_TRUE(std::isnan(Summarize({}).median));
  EXPECT_TRUE(Summarize({1, kNaN, kNaN, 2, kNaN, kNaN, 3}).sparse());
  EXPECT_FALSE(Summarize({1, kNaN, 2, kNaN, 3}).sparse());
}

TEST(Summary, BlocksAreConsecutiveParts) {
  std::vector<double> values;
  for (int i = 0; i < 16 * 5; ++i) values.push_back(i);
  const Summary summary = Summarize(values);
  ASSERT_EQ(summary.block_medians.size(), 16u);
  for (int block = 0; block < 16; ++block) EXPECT_EQ(summary.block_medians[block], 5 * block + 2);
  EXPECT_EQ(Summarize(std::vector<double>(37, 1.0)).block_medians.size(), 16u);
}

}  // namespace
}  // namespace plait::report
