#include "tools/report_parts/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace plait::report {
namespace {

Summary Noisy(double level, double noise, int count, int seed, double drift = 0) {
  std::mt19937_64 random(seed);
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    values.push_back(level + noise * std::normal_distribution<>()(random) + drift * i / count);
  }
  return Summarize(values);
}

TEST(Comparison, ADifferenceBeyondTheNoiseIsSeen) {
  // The medians of 16 blocks of 100 values have a standard deviation of about 1.25 * 0.1 / 10; of their means
  // a quarter of that, so that 3 % are some ten standard deviations.
  const Ratio higher = Compare(Noisy(1, 0.1, 1600, 1), Noisy(1.03, 0.1, 1600, 2));
  EXPECT_EQ(higher.verdict, Verdict::kHigher);
  EXPECT_NEAR(higher.ratio, 1.03, 0.015);
  EXPECT_LT(higher.low, higher.ratio);
  EXPECT_GT(higher.high, higher.ratio);
  EXPECT_EQ(Compare(Noisy(1.03, 0.1, 1600, 2), Noisy(1, 0.1, 1600, 1)).verdict, Verdict::kLower);
}

TEST(Comparison, NoiseAloneIsWithinTheSpread) {
  // 95 % intervals: of 100 pairs without a difference about 5 are judged different; more than 15 would be
  // more than four standard deviations (sqrt(100 * 0.05 * 0.95) = 2.2) off.
  int different = 0;
  for (int pair = 0; pair < 100; ++pair) {
    const Ratio ratio = Compare(Noisy(1, 0.1, 800, 2 * pair), Noisy(1, 0.1, 800, 2 * pair + 1));
    different += ratio.verdict != Verdict::kWithinSpread;
  }
  EXPECT_LE(different, 15);
}

// A run of ones against one whose blocks are spread evenly. Its mean is `deviations` standard deviations of such means
// away: of 16 numbers a step apart, step * sqrt((16^2 - 1) / 12) / sqrt(16).
Verdict OfAMeanAway(double deviations) {
  constexpr double kStep = 0.01;
  std::vector<double> spread;
  for (int i = 0; i < kBlocks; ++i) {
    spread.push_back(1 + kStep * (deviations * std::sqrt(255.0 / 12 / 16) + i - 7.5));
  }
  return Compare(Summarize(std::vector<double>(kBlocks, 1.0)), Summarize(spread)).verdict;
}

TEST(Comparison, TheIntervalIsOf95Percent) {
  static_assert(kBlocks == 16);
  // Of normal numbers 95 % are within 1.96 standard deviations.
  EXPECT_EQ(OfAMeanAway(2.5), Verdict::kHigher);
  EXPECT_EQ(OfAMeanAway(-2.5), Verdict::kLower);
  EXPECT_EQ(OfAMeanAway(1.5), Verdict::kWithinSpread);
  EXPECT_EQ(OfAMeanAway(-1.5), Verdict::kWithinSpread);
}

// Steps of a run that slows down are correlated; as independent samples, 800 draws would seem significant.
TEST(Comparison, ADriftWidensTheSpread) {
  const Ratio drifting = Compare(Noisy(1, 0.01, 800, 1, 0.5), Noisy(1.03, 0.01, 800, 2, 0.5));
  EXPECT_EQ(drifting.verdict, Verdict::kWithinSpread);
  EXPECT_EQ(Compare(Noisy(1, 0.01, 800, 1), Noisy(1.03, 0.01, 800, 2)).verdict, Verdict::kHigher);
}

TEST(Comparison, WhatCannotBeJudged) {
  EXPECT_EQ(Compare(Noisy(1, 0.1, 7, 1), Noisy(2, 0.1, 100, 2)).verdict, Verdict::kTooFew);
  EXPECT_NEAR(Compare(Noisy(1, 0, 7, 1), Noisy(2, 0, 100, 2)).ratio, 2, 1e-15);
  EXPECT_EQ(Compare(Noisy(0, 0, 20, 1), Noisy(1, 0, 20, 2)).verdict, Verdict::kNoRatio);
  EXPECT_EQ(Compare(Noisy(-1, 0, 20, 1), Noisy(1, 0, 20, 2)).verdict, Verdict::kNoRatio);
  EXPECT_EQ(Compare(Summarize({kNaN}), Noisy(1, 0, 20, 2)).verdict, Verdict::kNoRatio);
  EXPECT_TRUE(std::isnan(Compare(Summarize({}), Noisy(1, 0, 20, 2)).ratio));
  EXPECT_EQ(Compare(Noisy(3, 0, 20, 1), Noisy(3, 0, 20, 2)).verdict, Verdict::kWithinSpread);
}

// Such as log-likelihoods: the smaller the ratio, the higher the value.
TEST(Comparison, OfNegativeValuesTheRunsAreJudgedNotTheRatio) {
  const Ratio half = Compare(Noisy(-2, 0, 20, 1), Noisy(-1, 0, 20, 2));
  EXPECT_DOUBLE_EQ(half.ratio, 0.5);
  EXPECT_EQ(half.verdict, Verdict::kHigher);
  EXPECT_EQ(Compare(Noisy(-1, 0, 20, 1), Noisy(-2, 0, 20, 2)).verdict, Verdict::kLower);
  EXPECT_EQ(Compare(Noisy(-3, 0, 20, 1), Noisy(-3, 0, 20, 2)).verdict, Verdict::kWithinSpread);
}

MetricNumbers WithUnits(const char* units, double level) {
  MetricNumbers numbers;
  numbers.metric.name = "wait";
  numbers.metric.units = units;
  numbers.summary = numbers.per_step = Noisy(level, 0, 20, 1);
  return numbers;
}

TEST(Comparison, ConvertsTimesAndRefusesOtherUnits) {
  const Ratio twice = Compare(WithUnits("s", 1), WithUnits("ms", 2000));
  EXPECT_DOUBLE_EQ(twice.ratio, 2);
  EXPECT_DOUBLE_EQ(twice.low, 2);
  EXPECT_DOUBLE_EQ(twice.high, 2);
  EXPECT_EQ(twice.verdict, Verdict::kHigher);
  EXPECT_EQ(Compare(WithUnits("ms", 1000), WithUnits("s", 1)).verdict, Verdict::kWithinSpread);
  const Ratio other = Compare(WithUnits("nats", 1), WithUnits("bits", 2000));
  EXPECT_EQ(other.verdict, Verdict::kOtherUnits);
  EXPECT_TRUE(std::isnan(other.ratio) && std::isnan(other.low) && std::isnan(other.high));
  EXPECT_EQ(VerdictText(other.verdict), "other units");
}

// A draw of the second run is a sum over ten steps, of the first over one.
TEST(Comparison, SumsOverADrawPerStepWhereDrawsCoverOtherNumbersOfSteps) {
  const MetricNumbers each = WithUnits("s", 1);
  MetricNumbers tenth = WithUnits("s", 1);
  tenth.summary = Noisy(10, 0, 20, 1);
  EXPECT_TRUE(AreComparedPerStep(each, tenth));
  EXPECT_DOUBLE_EQ(Compare(each, tenth).ratio, 1);
  EXPECT_EQ(Compare(each, tenth).verdict, Verdict::kWithinSpread);
  EXPECT_FALSE(AreComparedPerStep(each, WithUnits("s", 2)));
  EXPECT_DOUBLE_EQ(Compare(each, WithUnits("s", 2)).ratio, 2);
}

TEST(Comparison, IsTheSameInEachCall) {
  const Summary a = Noisy(1, 0.3, 100, 5), b = Noisy(1.01, 0.3, 100, 6);
  EXPECT_EQ(Compare(a, b).low, Compare(a, b).low);
  EXPECT_EQ(Compare(a, b).high, Compare(a, b).high);
}

}  // namespace
}  // namespace plait::report
