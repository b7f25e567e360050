#include "comm/half_precision.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace plait::comm {
namespace {

std::uint16_t Bits(float value, DataType type) {
  std::uint16_t bits = 0;
  Narrow(&value, {&bits, 1, type});
  return bits;
}

// The nearest of all representable values, ties to the even one: found by comparing with every neighbour.
void ExpectNearest(float value, DataType type) {
  const std::uint16_t bits = Bits(value, type);
  float got, below, above;
  Widen({&bits, 1, type}, &got);
  const std::uint16_t less = bits - 1, more = bits + 1;
  Widen({&less, 1, type}, &below);
  Widen({&more, 1, type}, &above);
  const double error = std::fabs(double{value} - got);
  for (const float neighbour : {below, above}) {
    const double other = std::fabs(double{value} - neighbour);
    EXPECT_LE(error, other) << value;
    EXPECT_TRUE(error != other || bits % 2 == 0) << value << " is a tie";
  }
}

TEST(HalfPrecision, EveryValueSurvivesARoundTrip) {
  for (const DataType type : {DataType::kBFloat16, DataType::kFloat16}) {
    for (int i = 0; i < 65536; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      float wide;
      Widen({&bits, 1, type}, &wide);
      if (std::isnan(wide)) continue;
      ASSERT_EQ(Bits(wide, type), bits);
    }
  }
}

TEST(HalfPrecision, RoundsToNearestEven) {
  for (const DataType type : {DataType::kBFloat16, DataType::kFloat16}) {
    for (int i = 1; i < 4000; ++i) {
      ExpectNearest(static_cast<float>(i) / 2048 + 1, type);  // every tie of f16 in [1, 3)
      ExpectNearest(1 + static_cast<float>(i) / 65536 / 8, type);
      ExpectNearest(static_cast<float>(std::exp(0.004 * i - 8)), type);
    }
  }
}

// The compiler converts one value at a time.
TEST(HalfPrecision, Float16GivesTheCompilersBits) {
  for (int i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    float wide;
    Widen({&bits, 1, DataType::kFloat16}, &wide);
    const auto expected = static_cast<float>(std::bit_cast<_Float16>(bits));
    ASSERT_EQ(std::isnan(wide), std::isnan(expected)) << i;
    if (std::isnan(wide)) continue;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(wide), std::bit_cast<std::uint32_t>(expected)) << i;
  }
  for (std::uint64_t i = 0; i < (std::uint64_t{1} << 32); i += 4093) {  // of all signs, exponents and ends
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(i));
    if (std::isnan(value)) continue;
    ASSERT_EQ(Bits(value, DataType::kFloat16), std::bit_cast<std::uint16_t>(static_cast<_Float16>(value)))
        << i;
  }
}

TEST(HalfPrecision, KeepsSpecialValues) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Bits(infinity, DataType::kBFloat16), 0x7f80);
  EXPECT_EQ(Bits(-infinity, DataType::kFloat16), 0xfc00);
  EXPECT_EQ(Bits(1e9f, DataType::kFloat16), 0x7c00);  // overflow
  EXPECT_EQ(Bits(-0.0f, DataType::kBFloat16), 0x8000);
  for (const DataType type : {DataType::kBFloat16, DataType::kFloat16}) {
    const std::uint16_t nan = Bits(std::numeric_limits<float>::signaling_NaN(), type);
    float wide;
    Widen({&nan, 1, type}, &wide);
    EXPECT_TRUE(std::isnan(wide));
  }
}

}  // namespace
}  // namespace plait::comm
