#include "base/quantity.h"

#include <gtest/gtest.h>

#include <limits>

namespace plait::base {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(FormatQuantity, UnitsSuitTheSize) {
  EXPECT_EQ(FormatQuantity(0.00154, "s"), "1.54 ms");
  EXPECT_EQ(FormatQuantity(12.5, "s"), "12.5 s");
  EXPECT_EQ(FormatQuantity(0.99999, "s"), "1 s");
  EXPECT_EQ(FormatQuantity(2.5e-10, "s"), "0.25 ns");
  EXPECT_EQ(FormatQuantity(-3e-6, "s"), "-3 µs");
  EXPECT_EQ(FormatQuantity(0, "s"), "0 s");
  EXPECT_EQ(FormatQuantity(1e300, "s"), "1e300 s");
  EXPECT_EQ(FormatQuantity(3350528, "bytes"), "3.195 MiB");
  EXPECT_EQ(FormatQuantity(12, "bytes"), "12 B");
  EXPECT_EQ(FormatQuantity(1023.99, "bytes"), "1 KiB");
}

TEST(FormatQuantity, PlainNumbersHaveFourDigits) {
  EXPECT_EQ(FormatQuantity(2152.41), "2152");
  EXPECT_EQ(FormatQuantity(0.123456), "0.1235");
  EXPECT_EQ(FormatQuantity(41234.5), "41,230");
  EXPECT_EQ(FormatQuantity(123456), "123,456") << "integers in full";
  EXPECT_EQ(FormatQuantity(1234567), "1,235,000");
  EXPECT_EQ(FormatQuantity(-98765.4), "-98,770");
  EXPECT_EQ(FormatQuantity(1.5e12), "1.5e12");
  EXPECT_EQ(FormatQuantity(1.25e-7), "1.25e-7");
  EXPECT_EQ(FormatQuantity(kNaN), "-");
  EXPECT_EQ(FormatQuantity(kInf, "s"), "inf");
  EXPECT_EQ(FormatQuantity(-kInf), "-inf");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
  EXPECT_EQ(FormatCount(-123), "-123");
  EXPECT_EQ(FormatPercent(0.7512), "75.1 %");
  EXPECT_EQ(FormatPercent(kNaN), "-");
}

}  // namespace
}  // namespace plait::base
