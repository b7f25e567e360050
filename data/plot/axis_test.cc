#include "data/plot/axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "absl/strings/str_replace.h"

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
  return AxisFor({&values}, logarithmic, AxisRange::kRobust);
}

std::vector<std::string> Labels(const Axis& axis, int most) {
  std::vector<std::string> labels;
  for (const Tick& tick : Ticks(axis, most)) labels.push_back(tick.label);
  return labels;
}

TEST(AxisFor, LeavesOneFarValueOutside) {
  std::vector<double> values = Between(1, 2, 99);
  values[98] = 1000;
  const Axis axis = RobustAxis(values);
  // Percentiles 1 and 99 are within [1, 2]; 5 % of a span of 1 on both sides, and one value less at the end.
  EXPECT_GT(axis.high, 1.9);
  EXPECT_LE(axis.high, 2.05);
  EXPECT_NEAR(axis.low, 0.95, 0.01);
  EXPECT_GT(AxisFor({&values}, false, AxisRange::kWithMargin).high, 1000);
}

TEST(AxisFor, ShowsWhatLiesLittleOutsideThePercentiles) {
  std::vector<double> values = Between(1, 2, 99);
  values[40] = 2.4;
  EXPECT_GT(RobustAxis(values).high, 2.4);
  values[40] = 2.6;  // more than half the span
  EXPECT_LT(RobustAxis(values).high, 2.1);
}

TEST(AxisFor, ShowsTheExceptionsOfAConstant) {
  std::vector<double> values(200, 3);
  values[7] = 50;
  EXPECT_GE(RobustAxis(values).high, 50);
}

TEST(AxisFor, TakesShortSeriesWhole) { EXPECT_GT(RobustAxis({1, 1.1, 1.2, 90}).high, 90); }

TEST(AxisFor, ASeriesApartFromTheOthersIsNoOutlier) {
  const std::vector<double> near = Between(1, 2, 10000), far = Between(50, 51, 30);
  const Axis axis = AxisFor({&near, &far}, false, AxisRange::kRobust);
  EXPECT_LT(axis.low, 1);
  EXPECT_GT(axis.high, 51);
}

TEST(AxisFor, HasPlaceForEveryInput) {
  for (const std::vector<double>& values : {std::vector<double>{},
                                            {kNan, kInfinity},
                                            {0},
                                            {5},
                                            {-3, -3},
                                            {1e308, -1e308},
                                            {1e-320},
                                            {1e300},
                                            {-5e-324, 5e-324},
                                            {0, 5e-324},
                                            {1e-310, 3e-310}}) {
    for (const bool logarithmic : {false, true}) {
      const Axis axis = RobustAxis(values, logarithmic);
      EXPECT_TRUE(std::isfinite(axis.low) && std::isfinite(axis.high));
      EXPECT_LT(axis.low, axis.high);
      EXPECT_LE(Ticks(axis, 7).size(), 7);
    }
  }
}

TEST(AxisFor, TimesHaveNoAxisBelowZero) { EXPECT_EQ(RobustAxis({0.001, 5, 10}).low, 0); }

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
  EXPECT_THAT(Labels({-1, 1}, 3), ElementsAre("-1", "0", "1"));
  EXPECT_THAT(Labels({0.00145, 0.0039}, 6), ElementsAre("0.0015", "0.0020", "0.0025", "0.0030", "0.0035"));
  EXPECT_THAT(Labels({0, 50000}, 6), ElementsAre("0", "10,000", "20,000", "30,000", "40,000", "50,000"));
  EXPECT_THAT(Labels({0, 4.1e7}, 5), ElementsAre("0", "1e7", "2e7", "3e7", "4e7"));
  EXPECT_THAT(Labels({1e-6, 2e-6}, 3), ElementsAre("1.0e-6", "1.5e-6", "2.0e-6"));
}

TEST(Ticks, HaveUnitsThatSuitTheirSize) {
  EXPECT_THAT(Labels({0.0014, 0.0017, false, "s"}, 4), ElementsAre("1.4 ms", "1.5 ms", "1.6 ms", "1.7 ms"));
  EXPECT_THAT(Labels({0, 4 << 20, false, "bytes"}, 5), ElementsAre("0", "1 MiB", "2 MiB", "3 MiB", "4 MiB"));
}

TEST(Ticks, OfLogarithmicAxes) {
  EXPECT_THAT(Labels({0.5, 2000, true}, 6), ElementsAre("1", "10", "100", "1000"));
  EXPECT_THAT(Labels({1e-9, 1e9, true}, 5), ElementsAre("1e-8", "1e-4", "1", "10000", "1e8"));
  EXPECT_THAT(Labels({2.1, 2.4, true}, 5), ElementsAre("2.1", "2.2", "2.3", "2.4"));
  EXPECT_THAT(Labels({2e-6, 2e-2, true, "s"}, 5), ElementsAre("10 µs", "100 µs", "1 ms", "10 ms"));
  EXPECT_THAT(Labels({8, 64 << 20, true, "bytes"}, 8),
              ElementsAre("8 B", "64 B", "512 B", "4 KiB", "32 KiB", "256 KiB", "2 MiB", "16 MiB"));
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
          EXPECT_NEAR(std::strtod(absl::StrReplaceAll(ticks[i].label, {{",", ""}}).c_str(), nullptr),
                      ticks[i].value, 1e-6 * span);
          EXPECT_NEAR(axis.Position(ticks[i].value), 0.5, 0.5 + 1e-6);
          if (i > 0) {
            EXPECT_GT(ticks[i].value, ticks[i - 1].value);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace plait::data
