#include "tools/report_numbers/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tools/report_numbers/curve.h"

namespace plait::report {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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

TEST(Summary, TailsAreWhatLiesBeyondTheCore) {
  for (const std::size_t count : {1u, 5u, 19u, 20u, 99u, 101u, 1000u, 5003u}) {
    const std::vector<double> values = Random(count, 0);
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const Summary summary = Summarize(values);
    std::vector<double> below, above;
    for (const double value : sorted) {
      if (value < summary.core_low) below.push_back(value);
      if (value > summary.core_high) above.push_back(value);
    }
    EXPECT_EQ(summary.below, below) << count;
    EXPECT_EQ(summary.above, above) << count;
    EXPECT_LE(above.size() * 100, count + 100) << "about a hundredth on either side";
    EXPECT_TRUE(std::binary_search(sorted.begin(), sorted.end(), summary.core_high));
    if (count < 20) {
      EXPECT_THAT(above, IsEmpty());
    }
  }
  // One outlier of 99 values, as the first call of a run gives it, is outside of the core.
  std::vector<double> times(99, 0.0015);
  times[98] = 0.247;
  EXPECT_EQ(Summarize(times).core_high, 0.0015);
  EXPECT_THAT(Summarize(times).above, ElementsAre(0.247));
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

TEST(Curve, FewValuesStayAsTheyAre) {
  const std::vector<double> values = {kNaN, 1, kNaN, 3, kInf, 2, kNaN};
  const Curve curve = Thinned(values, 10, 100, false);
  EXPECT_EQ(curve.draws_per_point, 1);
  ASSERT_EQ(curve.points.size(), 5u) << "from the first to the last value";
  EXPECT_EQ(curve.points[0].draw, 11);
  EXPECT_EQ(curve.points[2].middle, 3);
  EXPECT_TRUE(std::isnan(curve.points[1].middle));
  EXPECT_TRUE(std::isnan(curve.points[3].middle));
  ASSERT_EQ(curve.marks.size(), 2u);
  EXPECT_EQ(curve.marks[0].draw, 12);
  EXPECT_EQ(curve.marks[0].kind, MarkKind::kNaN);
  EXPECT_EQ(curve.marks[1].draw, 14);
  EXPECT_EQ(curve.marks[1].kind, MarkKind::kPositiveInfinity);
  EXPECT_EQ(Thinned(values, 0, 100, true).points.size(), 3u) << "sparse: no gaps";
  EXPECT_EQ(Thinned(values, 0, 100, true).marks.size(), 1u);
  EXPECT_THAT(Thinned({kNaN, kNaN}, 0, 10, false).points, IsEmpty());
  EXPECT_THAT(Thinned({}, 0, 10, false).points, IsEmpty());
}

// However long the series and wherever the extremes are, thinning keeps them, in the point that they belong
// to.
TEST(Curve, ThinningKeepsExtremes) {
  for (const int place : {0, 1, 4999, 77777, 99998, 99999}) {
    std::vector<double> values = Random(100000, 10);
    values[place] = 1e9;
    values[(place + 50000) % 100000] = -1e9;
    const Curve curve = Thinned(values, 0, 800, false);
    ASSERT_LE(curve.points.size(), 800u);
    const auto highest = std::max_element(curve.points.begin(), curve.points.end(),
                                          [](const auto& a, const auto& b) { return a.high < b.high; });
    EXPECT_EQ(highest->high, 1e9);
    EXPECT_LE(std::abs(highest->draw - place), curve.draws_per_point);
    EXPECT_EQ(std::min_element(curve.points.begin(), curve.points.end(),
                               [](const auto& a, const auto& b) { return a.low < b.low; })
                  ->low,
              -1e9);
    for (const CurvePoint& point : curve.points) {
      EXPECT_LE(point.low, point.middle);
      EXPECT_LE(point.middle, point.high);
    }
  }
}

TEST(Curve, MarksOfLongSeriesAreAtMostOneOfAKindForEachPoint) {
  std::vector<double> values(10000, kNaN);
  for (int i = 0; i < 10000; i += 2) values[i] = i == 5000 ? kInf : 1;
  const Curve curve = Thinned(values, 0, 100, false);
  EXPECT_EQ(curve.draws_per_point, 100);
  EXPECT_EQ(curve.marks.size(), 101u);
  EXPECT_EQ(std::count_if(curve.marks.begin(), curve.marks.end(),
                          [](const Mark& mark) { return mark.kind == MarkKind::kPositiveInfinity; }),
            1);
}

}  // namespace
}  // namespace plait::report
