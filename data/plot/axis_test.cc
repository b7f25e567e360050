#include "data/plot/axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

namespace plait::data {
namespace {

using ::testing::ElementsAre;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> Between(double low, double high, int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(low + (high - low) * i / (count - 1));
  return values;
}

Axis RobustAxis(const std::vector<double>& values, bool logarithmic = false) {
  return AxisOfValues({&values}, logarithmic, true);
}

std::vector<std::string> Labels(const Axis& axis, int most) {
  std::vector<std::string> labels;
  for (const Tick& tick : Ticks(axis, most)) labels.push_back(tick.label);
  return labels;
}

TEST(AxisOfValues, LeavesOneFarValueOutside) {
  std::vector<double> values = Between(1, 2, 99);
  values[98] = 1000;
  const Axis axis = RobustAxis(values);
  // Percentiles 1 and 99 are within [1, 2]; 5 % of a span of 1 on both sides, and one value less at the end.
  EXPECT_GT(axis.high, 1.9);
  EXPECT_LE(axis.high, 2.05);
  EXPECT_NEAR(axis.low, 0.95, 0.01);
  EXPECT_GT(AxisOfValues({&values}, false, false).high, 1000);
}

TEST(AxisOfValues, ShowsWhatLiesLittleOutsideThePercentiles) {
  std::vector<double> values = Between(1, 2, 99);
  values[40] = 2.4;
  EXPECT_GT(RobustAxis(values).high, 2.4);
  values[40] = 2.6;  // more than half the span
  EXPECT_LT(RobustAxis(values).high, 2.1);
}

TEST(AxisOfValues, ShowsTheExceptionsOfAConstant) {
  std::vector<double> values(200, 3);
  values[7] = 50;
  EXPECT_GE(RobustAxis(values).high, 50);
}

TEST(AxisOfValues, TakesShortSeriesWhole) { EXPECT_GT(RobustAxis({1, 1.1, 1.2, 90}).high, 90); }

TEST(AxisOfValues, ASeriesApartFromTheOthersIsNoOutlier) {
  const std::vector<double> near = Between(1, 2, 10000), far = Between(50, 51, 30);
  const Axis axis = AxisOfValues({&near, &far}, false, true);
  EXPECT_LT(axis.low, 1);
  EXPECT_GT(axis.high, 51);
}

TEST(AxisOfValues, HasPlaceForEveryInput) {
  for (const std::vector<double>& values :
       {std::vector<double>{}, {kNan, kInfinity}, {0}, {5}, {-3, -3}, {1e308, -1e308}, {1e-320}, {1e300}}) {
    for (const bool logarithmic : {false, true}) {
      const Axis axis = RobustAxis(values, logarithmic);
      EXPECT_TRUE(std::isfinite(axis.low) && std::isfinite(axis.high));
      EXPECT_LT(axis.low, axis.high);
      EXPECT_LE(Ticks(axis, 7).size(), 7);
    }
  }
}

TEST(AxisOfValues, TimesHaveNoAxisBelowZero) { EXPECT_EQ(RobustAxis({0.001, 5, 10}).low, 0); }

TEST(Axis, PositionIsStraightOrLogarithmic) {
  const Axis straight = {10, 30}, logarithmic = {1, 100, true};
  EXPECT_DOUBLE_EQ(straight.Position(15), 0.25);
  EXPECT_DOUBLE_EQ(logarithmic.Position(10), 0.5);
  EXPECT_TRUE(std::isnan(logarithmic.Position(0)));
  EXPECT_TRUE(std::isnan(logarithmic.Position(-1)));
  EXPECT_TRUE(std::isnan(straight.Position(kNan)));
  EXPECT_EQ(straight.Position(kInfinity), kInfinity);
}

TEST(Ticks, AreRoundAndFew) {
  EXPECT_THAT(Labels({1, 99}, 5), ElementsAre("20", "40", "60", "80"));
  EXPECT_THAT(Labels({0, 1}, 3), ElementsAre("0", "0.5", "1.0"));
  EXPECT_THAT(Labels({0.00145, 0.0039}, 6), ElementsAre("0.0015", "0.0020", "0.0025", "0.0030", "0.0035"));
  EXPECT_THAT(Labels({0, 4.1e7}, 5), ElementsAre("0", "1e7", "2e7", "3e7", "4e7"));
  EXPECT_THAT(Labels({1e-6, 2e-6}, 3), ElementsAre("1.0e-6", "1.5e-6", "2.0e-6"));
}

TEST(Ticks, OfLogarithmicAxes) {
  EXPECT_THAT(Labels({0.5, 2000, true}, 6), ElementsAre("1", "10", "100", "1000"));
  EXPECT_THAT(Labels({1, 100, true}, 8), ElementsAre("1", "2", "5", "10", "20", "50", "100"));
  EXPECT_THAT(Labels({1e-9, 1e9, true}, 5), ElementsAre("1e-5", "1", "1e5"));
  EXPECT_THAT(Labels({2.1, 2.4, true}, 5), ElementsAre("2.1", "2.2", "2.3", "2.4"));
}

TEST(Ticks, OfBytesArePowersOfTwo) {
  EXPECT_THAT(Labels({8, 64 << 20, true, true}, 8),
              ElementsAre("8", "64", "512", "4Ki", "32Ki", "256Ki", "2Mi", "16Mi"));
  EXPECT_THAT(Labels({0, 3 << 20, false, true}, 4), ElementsAre("0", "1Mi", "2Mi", "3Mi"));
}

// Whatever the range: within the axis, not too many, ascending, and the label says the value.
TEST(Ticks, LabelsSayTheirValues) {
  for (double low : {-3e5, -1.0, 0.0, 1e-9, 0.37, 12345.0}) {
    for (double span : {1e-10, 3.3e-4, 1.0, 77.0, 1e6, 9e12}) {
      if (span < 1e-9 * std::abs(low)) continue;
      for (int most : {2, 5, 9}) {
        const Axis axis = {low, low + span};
        const std::vector<Tick> ticks = Ticks(axis, most);
        EXPECT_LE(static_cast<int>(ticks.size()), most);
        EXPECT_GE(ticks.size(), most > 2 ? 2 : 1) << low << " " << span;
        for (std::size_t i = 0; i < ticks.size(); ++i) {
          EXPECT_NEAR(std::strtod(ticks[i].label.c_str(), nullptr), ticks[i].value, 1e-6 * span);
          EXPECT_NEAR(axis.Position(ticks[i].value), 0.5, 0.5 + 1e-6);
          if (i > 0) {
            EXPECT_GT(ticks[i].value, ticks[i - 1].value);
          }
        }
      }
    }
  }
}

TEST(Short, HasThreeDigits) {
  EXPECT_EQ(Short(0.002131, false), "0.00213");
  EXPECT_EQ(Short(1.25e-7, false), "1.25e-7");
  EXPECT_EQ(Short(1536, true), "1.5Ki");
}

}  // namespace
}  // namespace plait::data
