// The loss against LibTorch's own, in float64.
#include "models/cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>

namespace plait::models {
namespace {

struct Case {
  std::int64_t rows, classes;
  at::ScalarType type;
  double eps;  // of the result's type
};

class CrossEntropyAgainstLibTorch : public ::testing::TestWithParam<Case> {};

TEST_P(CrossEntropyAgainstLibTorch, LossAndGradientAreTheSame) {
  const Case& c = GetParam();
  const at::Tensor values = at::randn({c.rows, c.classes}, at::kDouble).mul_(3).to(c.type);
  const at::Tensor targets = at::randint(c.classes, {c.rows}, at::kLong);
  const at::Tensor logits = values.clone().requires_grad_(true);
  const at::Tensor loss = CrossEntropy(logits, targets);
  loss.mul(2).backward();

  const at::Tensor exact = values.to(at::kDouble).requires_grad_(true);
  const at::Tensor expected = at::cross_entropy_loss(exact, targets);
  expected.mul(2).backward();
  // Log-probabilities are below 32 here. Each has two roundings and the logarithm of a sum of `classes`
  // numbers, whose relative error is an absolute one; the mean adds a rounding a row, of a sum of rows * 32.
  const double sum_eps = c.type == at::kDouble ? 0x1p-53 : 0x1p-24;
  EXPECT_EQ(loss.scalar_type(), c.type == at::kDouble ? at::kDouble : at::kFloat);
  EXPECT_NEAR(loss.item<double>(), expected.item<double>(), (c.rows + c.classes + 4) * 32 * sum_eps);
  // A gradient is 2 (p - [target]) / rows with p <= 1 and an error of p like that of the sum, then rounded to
  // the type of the logits.
  const double bound = 2.0 / c.rows * ((c.classes + 8) * 4 * sum_eps + 2 * c.eps);
  EXPECT_EQ(logits.grad().scalar_type(), c.type);
  EXPECT_LE((logits.grad().to(at::kDouble) - exact.grad()).abs().max().item<double>(), bound);
  EXPECT_GT(exact.grad().abs().max().item<double>(), 50 * bound);
}

// 700 rows of 10,000 classes are two parts of widened logits.
INSTANTIATE_TEST_SUITE_P(Types, CrossEntropyAgainstLibTorch,
                         ::testing::Values(Case{7, 5, at::kDouble, 0x1p-53},
                                           Case{96, 65, at::kFloat, 0x1p-24},
                                           Case{96, 65, at::kBFloat16, 0x1p-8},
                                           Case{700, 10000, at::kBFloat16, 0x1p-8},
                                           Case{96, 65, at::kHalf, 0x1p-11}));

TEST(CrossEntropy, OfEqualLogitsIsTheLogarithmOfTheirNumber) {
  const at::Tensor targets = at::zeros({3}, at::kLong);
  EXPECT_NEAR(CrossEntropy(at::zeros({3, 65}, at::kDouble), targets).item<double>(), std::log(65), 1e-15 * 8);
}

TEST(CrossEntropyDeathTest, RefusesOtherShapes) {
  EXPECT_DEATH(CrossEntropy(at::zeros({3, 2}), at::zeros({2}, at::kLong)), "targets of shape \\[2\\]");
}

}  // namespace
}  // namespace plait::models
