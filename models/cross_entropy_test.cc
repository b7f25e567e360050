// Sum and gradient against LibTorch's own in float64.
#include "models/cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace plait::models {
namespace {

struct Case {
  std::int64_t rows, classes;
  at::ScalarType type;
  double eps;  // of the result's type
  bool ignores = false;
};

class CrossEntropyAgainstLibTorch : public ::testing::TestWithParam<Case> {};

TEST_P(CrossEntropyAgainstLibTorch, SumAndGradientAreTheSame) {
  const Case& c = GetParam();
  const at::Tensor values = at::randn({c.rows, c.classes}, at::kDouble).mul_(3).to(c.type);
  const at::Tensor targets = at::randint(c.classes, {c.rows}, at::kLong);
  if (c.ignores) {
    for (std::int64_t row = 0; row < c.rows; row += 3) targets[row] = -100;
    values[0].fill_(std::numeric_limits<double>::quiet_NaN());  // an ignored row does not matter
  }
  const at::Tensor logits = values.clone().requires_grad_(true);
  const LossSum loss = CrossEntropySum(logits, targets);
  loss.sum.mul(2).backward();

  const at::Tensor exact = values.to(at::kDouble).requires_grad_(true);
  const at::Tensor expected = at::cross_entropy_loss(exact, targets, {}, at::Reduction::Sum);
  expected.mul(2).backward();
  EXPECT_EQ(loss.count, c.ignores ? c.rows - (c.rows + 2) / 3 : c.rows);
  // Log-probabilities are below 32 here. Each has two roundings and the logarithm of a sum of `classes`
  // numbers, whose relative error is an absolute one; the sum adds a rounding a row, of at most rows * 32.
  const double rows = static_cast<double>(c.rows);
  const double sum_eps = c.type == at::kDouble ? 0x1p-53 : 0x1p-24;
  EXPECT_EQ(loss.sum.scalar_type(), c.type == at::kDouble ? at::kDouble : at::kFloat);
  EXPECT_NEAR(loss.sum.item<double>(), expected.item<double>(), rows * (rows + c.classes + 4) * 32 * sum_eps);
  // A gradient is 2 (p - [target]) with p <= 1 and an error of p like that of the sum, then rounded to the
  // type of the logits.
  const double bound = 2 * ((c.classes + 8) * 4 * sum_eps + 2 * c.eps);
  EXPECT_EQ(logits.grad().scalar_type(), c.type);
  const std::int64_t first = c.ignores ? 1 : 0;  // LibTorch's own gradient of a row of NaN is NaN
  EXPECT_LE((logits.grad().to(at::kDouble) - exact.grad())
                .narrow(0, first, c.rows - first)
                .abs()
                .max()
                .item<double>(),
            bound);
  EXPECT_EQ(logits.grad()[0].equal(at::zeros_like(logits[0])), c.ignores);
  EXPECT_GT(exact.grad().narrow(0, first, c.rows - first).abs().max().item<double>(), 50 * bound);
}

// 700 rows of 10,000 classes are two parts of widened logits.
INSTANTIATE_TEST_SUITE_P(
    Types, CrossEntropyAgainstLibTorch,
    ::testing::Values(Case{7, 5, at::kDouble, 0x1p-53}, Case{96, 65, at::kFloat, 0x1p-24},
                      Case{96, 65, at::kBFloat16, 0x1p-8}, Case{700, 10000, at::kBFloat16, 0x1p-8},
                      Case{96, 65, at::kHalf, 0x1p-11}, Case{10, 5, at::kDouble, 0x1p-53, true},
                      Case{96, 65, at::kFloat, 0x1p-24, true},
                      Case{700, 10000, at::kBFloat16, 0x1p-8, true}));

TEST(CrossEntropySum, OfEqualLogitsIsTheLogarithmOfTheirNumber) {
  const at::Tensor targets = at::zeros({3}, at::kLong);
  EXPECT_NEAR(CrossEntropySum(at::zeros({3, 65}, at::kDouble), targets).sum.item<double>(), 3 * std::log(65),
              1e-15 * 8 * 3);
}

TEST(CrossEntropySum, IsZeroWhereAllTargetsAreIgnored) {
  for (const std::int64_t rows : {0, 4}) {
    const at::Tensor logits = at::randn({rows, 5}, at::kDouble).requires_grad_(true);
    const LossSum loss = CrossEntropySum(logits, at::full({rows}, -1, at::kLong));
    EXPECT_EQ(loss.count, 0);
    EXPECT_EQ(loss.sum.item<double>(), 0);
    loss.sum.backward();
    EXPECT_TRUE(logits.grad().equal(at::zeros_like(logits)));
  }
}

TEST(CrossEntropySumDeathTest, RefusesOtherShapes) {
  EXPECT_DEATH(CrossEntropySum(at::zeros({3, 2}), at::zeros({2}, at::kLong)), "targets of shape \\[2\\]");
}

}  // namespace
}  // namespace plait::models
