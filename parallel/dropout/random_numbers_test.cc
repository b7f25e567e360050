#include "parallel/dropout/random_numbers.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/special_ndtri.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "base/testing/same_on_threads.h"

namespace plait::dropout {
namespace {

constexpr std::int64_t kRows = 2000, kColumns = 100;

at::Tensor Rows() { return at::arange(kRows, at::kLong); }

// Six standard deviations.
void ExpectMean(const at::Tensor& x, double mean, double variance) {
  EXPECT_NEAR(x.mean().item<double>(), mean, 6 * std::sqrt(variance / static_cast<double>(x.numel())));
}

TEST(RandomNumbers, UniformOnesAreUniform) {
  const at::Tensor u = UniformNumbers(3, Rows(), kColumns);
  EXPECT_GT(u.min().item<double>(), 0);
  EXPECT_LT(u.max().item<double>(), 1);
  for (const double x : {0.01, 0.3, 0.5, 0.9}) ExpectMean(u.lt(x).to(at::kDouble), x, x * (1 - x));
}

TEST(RandomNumbers, NormalOnesAreNormal) {
  const at::Tensor n = NormalNumbers(3, Rows(), kColumns);
  ExpectMean(n, 0, 1);
  ExpectMean(n.pow(2), 1, 2);        // the fourth moment is 3
  ExpectMean(n.pow(4), 3, 105 - 9);  // the eighth is 105
  ExpectMean(n.pow(3), 0, 15);
  for (const double x : {-2.0, -0.5, 0.0, 1.0, 3.0}) {
    const double p = std::erfc(-x / std::numbers::sqrt2) / 2;
    ExpectMean(n.lt(x).to(at::kDouble), p, p * (1 - p));
  }
  // Neighbours in both directions, and other seeds, are independent.
  ExpectMean(n.narrow(1, 1, kColumns - 1) * n.narrow(1, 0, kColumns - 1), 0, 1);
  ExpectMean(n.narrow(0, 1, kRows - 1) * n.narrow(0, 0, kRows - 1), 0, 1);
  ExpectMean(n * NormalNumbers(4, Rows(), kColumns), 0, 1);
}

// Of the same uniform numbers.
TEST(RandomNumbers, NormalOnesAreTheInverseOfTheDistributionFunction) {
  const at::Tensor rows = at::arange(60000, at::kLong);
  const at::Tensor expected = at::special_ndtri(UniformNumbers(3, rows, 50)), n = NormalNumbers(3, rows, 50);
  EXPECT_GT(expected.abs().max().item<double>(), 4.5) << "tails are not tested";
  EXPECT_TRUE(((n - expected).abs() <= 4e-7 * (1 + expected.abs())).all().item<bool>());
}

TEST(RandomNumbers, PartsHaveTheNumbersOfTheWhole) {
  for (const auto numbers : {UniformNumbers, NormalNumbers}) {
    const at::Tensor whole = numbers(9, Rows(), 7), some = at::tensor({7, 3, 1999}, at::kLong);
    EXPECT_TRUE(numbers(9, some, 7).equal(whole.index_select(0, some)));
    for (const std::int64_t row : {0, 5, 1998}) {
      EXPECT_TRUE(numbers(9, Rows().narrow(0, row, 1), 7).equal(whole.narrow(0, row, 1)));
    }
    EXPECT_EQ(numbers(9, Rows().narrow(0, 0, 0), 7).numel(), 0);
  }
}

TEST(RandomNumbers, OperatorsOfOtherDevicesMakeTheSame) {
  const at::Tensor rows = Rows() + (std::int64_t{1} << 40);
  EXPECT_TRUE(internal::UniformByOperators(0xdeadbeefcafef00dULL, rows, 9)
                  .equal(UniformNumbers(0xdeadbeefcafef00dULL, rows, 9)));
}

TEST(RandomNumbers, MetaTensorsHaveShapes) {
  EXPECT_EQ(NormalNumbers(1, Rows().to(at::kMeta), 4).sizes(), (std::vector<std::int64_t>{kRows, 4}));
}

TEST(RandomNumbers, ThreadsDoNotMatter) {
  ExpectSameOnThreads(1, [] { return std::vector<at::Tensor>{UniformNumbers(3, Rows(), kColumns)}; });
}

}  // namespace
}  // namespace plait::dropout
