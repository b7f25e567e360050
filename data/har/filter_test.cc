#include "data/har/filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

namespace plait::data {
namespace {

constexpr double kEps = std::numeric_limits<double>::epsilon();

struct Design {
  int order;
  double cutoff_hz, sample_rate_hz;
  Filter expected;
};

// SciPy 1.17: scipy.signal.butter(order, cutoff_hz, fs=sample_rate_hz)
const Design kDesigns[] = {
    {3,
     20.0,
     50.0,
     {{0.5276243825019432, 1.5828731475058295, 1.5828731475058295, 0.5276243825019432},
      {1.0, 1.7600418803431688, 1.1828932620378303, 0.2780599176345463}}},
    {3,
     0.3,
     50.0,
     {{6.4518491290909294e-06, 1.9355547387272787e-05, 1.9355547387272787e-05, 6.4518491290909294e-06},
      {1.0, -2.9246062354506974, 2.852027818593894, -0.9273699683501638}}},
    {4,
     5.0,
     100.0,
     {{0.00041659920440659937, 0.0016663968176263975, 0.002499595226439596, 0.0016663968176263975,
       0.00041659920440659937},
      {1.0, -3.180638548874719, 3.8611943489942133, -2.112155355110969, 0.43826514226197977}}},
};

// Both sides round each pole to a few eps and sum at most C(4,2) = 6 products of them: 32 eps of the largest
// term.
TEST(Butterworth, CoefficientsAreScipys) {
  for (const Design& design : kDesigns) {
    const Filter filter = ButterworthLowPass(design.order, design.cutoff_hz, design.sample_rate_hz);
    ASSERT_EQ(filter.b.size(), design.expected.b.size());
    for (std::size_t k = 0; k < filter.b.size(); ++k) {
      EXPECT_NEAR(filter.b[k], design.expected.b[k], 32 * kEps * design.expected.b[k]);
      EXPECT_NEAR(filter.a[k], design.expected.a[k], 32 * kEps * 6);
    }
  }
}

// |H| = 1 at 0 Hz, 1/sqrt(2) at the cut-off, 0 at half the sample rate: what makes it a Butterworth low-pass.
// Near 0 Hz the denominator cancels to the product of |1 - pole|, the sum of |b|; rounding is eps times 8
// over that.
TEST(Butterworth, GainAtZeroCutoffAndHalfTheRate) {
  for (const Design& design : kDesigns) {
    const Filter filter = ButterworthLowPass(design.order, design.cutoff_hz, design.sample_rate_hz);
    const auto gain = [&](double hz) {
      const std::complex<double> delay = std::polar(1.0, -2 * std::numbers::pi * hz / design.sample_rate_hz);
      std::complex<double> above = 0, below = 0;
      for (int k = design.order; k >= 0; --k) {
        above = above * delay + filter.b[k];
        below = below * delay + filter.a[k];
      }
      return std::abs(above / below);
    };
    double cancelled = 0;
    for (const double b : filter.b) cancelled += b;
    const double tolerance = 16 * 8 * kEps / cancelled;
    EXPECT_NEAR(gain(0), 1.0, tolerance);
    EXPECT_NEAR(gain(design.cutoff_hz), std::sqrt(0.5), tolerance);
    EXPECT_NEAR(gain(design.sample_rate_hz / 2), 0.0, 16 * kEps);
  }
}

// scipy.signal.lfilter(*butter(3, 20, fs=50), [1, 0, 0, 0, 0, 0])
TEST(Apply, ImpulseResponseIsScipys) {
  const std::vector<double> expected = {0.5276243825019432,   0.6542321372122061, -0.19272614040249125,
                                        -0.05376751821017106, 0.1406918025655796, -0.13043281500274412};
  const std::vector<double> response =
      Apply(ButterworthLowPass(3, 20.0, 50.0), std::vector<double>{1, 0, 0, 0, 0, 0});
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(response[i], expected[i], 6 * 8 * kEps * 2);
}

TEST(Apply, IsCausalAndLinearAndAcceptsNothing) {
  const Filter filter = ButterworthLowPass(3, 20.0, 50.0);
  EXPECT_TRUE(Apply(filter, {}).empty());
  std::vector<double> signal = {1, -2, 3, 0.5, 7};
  const std::vector<double> before = Apply(filter, signal);
  signal[4] = 100;
  const std::vector<double> after = Apply(filter, signal);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(before[i], after[i]);
}

TEST(MedianOfThree, SortsEveryOrderAndTakesZeroOutside) {
  std::vector<double> three = {1, 2, 3};
  do {
    EXPECT_EQ(MedianOfThree(three)[1], 2);
  } while (std::next_permutation(three.begin(), three.end()));
  // scipy.signal.medfilt([5, 4, -3, -2], 3) = [4, 4, -2, -2]
  EXPECT_EQ(MedianOfThree(std::vector<double>{5, 4, -3, -2}), (std::vector<double>{4, 4, -2, -2}));
  EXPECT_EQ(MedianOfThree(std::vector<double>{5}), (std::vector<double>{0}));
}

}  // namespace
}  // namespace plait::data
