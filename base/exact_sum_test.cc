#include "base/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/seed.h"

namespace plait::base {
namespace {

double Sum(const std::vector<double>& terms) {
  ExactSum sum;
  for (const double term : terms) sum.Add(term);
  return sum.Value();
}

TEST(ExactSum, IsExactWhereADoubleIs) {
  constexpr double kLargest = std::numeric_limits<double>::max(),
                   kLeast = std::numeric_limits<double>::denorm_min();
  for (const double x : {0.0, 1.0, -1.0, 0.1, -3e-310, kLeast, kLargest, -kLargest, 0x1.fffffffffffffp-500}) {
    EXPECT_EQ(Sum({x}), x);
    EXPECT_EQ(Sum({x, x, -x}), x);
    EXPECT_EQ(Sum({x, -x}), 0);
  }
  // What every order of additions in doubles loses.
  EXPECT_EQ(Sum({1e300, 1, -1e300}), 1);
  EXPECT_EQ(Sum({kLargest, kLargest, kLeast, -kLargest, -kLargest}), kLeast);
  EXPECT_EQ(Sum({1, 0x1p-60, -1}), 0x1p-60);
}

// Integers of 128 bits are another exact sum.
TEST(ExactSum, IsThatOfIntegers) {
  RandomStream random(1);
  for (int run = 0; run < 200; ++run) {
    std::vector<double> terms;
    __int128 exact = 0;
    for (int i = 0; i < 50; ++i) {
      const auto integer = static_cast<std::int64_t>(random() >> 11) * (random.Below(2) == 0 ? -1 : 1);
      const int shift = static_cast<int>(random.Below(50));
      terms.push_back(std::ldexp(static_cast<double>(integer), shift - 80));
      exact += static_cast<__int128>(integer) << shift;
    }
    const double expected = std::ldexp(static_cast<double>(exact), -80);
    EXPECT_NEAR(Sum(terms) / expected, 1, std::numeric_limits<double>::epsilon());
  }
}

TEST(ExactSum, OrderAndPartsDoNotMatter) {
  RandomStream random(2);
  std::vector<double> terms;
  for (int i = 0; i < 1000; ++i) {
    terms.push_back(std::ldexp(random.Uniform() - 0.5, static_cast<int>(random.Below(2000)) - 1000));
  }
  const double expected = Sum(terms);
  for (int run = 0; run < 20; ++run) {
    Shuffle(random, absl::MakeSpan(terms));
    ExactSum whole, parts[3];
    for (const double term : terms) parts[random.Below(3)].Add(term);
    for (ExactSum& part : parts) {
      for (std::size_t i = 0; i < ExactSum::kLimbs; ++i) whole.Limbs()[i] += part.Limbs()[i];
    }
    EXPECT_EQ(whole.Value(), expected);
    EXPECT_EQ(Sum(terms), expected);
  }
}

TEST(ExactSum, IsNaNWithATermThatIsNotFinite) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan(Sum({1, kInfinity})));
  EXPECT_TRUE(std::isnan(Sum({kInfinity, -kInfinity})));
  EXPECT_TRUE(std::isnan(Sum({std::nan(""), 1})));
}

}  // namespace
}  // namespace plait::base
