// The loss against LibTorch's own, in float64.
#include "models/cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/log_softmax.h>
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
  double rounded;    // unit roundoff of the gradient's type
  double least = 0;  // half its smallest positive number
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
  // A log-probability is (x - largest) - log(sum): two roundings of at most L u, with L the largest of all
  // rows, and the relative error of the sum of `classes` exponentials, (sqrt(classes) + 8) u (terms of one
  // sign in vectors: 4 standard deviations), which is an absolute one of its logarithm. The mean is a sum of
  // one sign, too. As softmax is the exponential of this, that is a probability's relative error.
  const double u = c.type == at::kDouble ? 0x1p-53 : 0x1p-24;
  const at::Tensor log = at::log_softmax(exact.detach(), 1);
  const double largest = -log.min().item<double>();
  const double of_log = (4 * largest + std::sqrt(static_cast<double>(c.classes)) + 8) * u;
  EXPECT_EQ(loss.scalar_type(), c.type == at::kDouble ? at::kDouble : at::kFloat);
  const double value = expected.item<double>(), rows = static_cast<double>(c.rows);
  EXPECT_NEAR(loss.item<double>(), value, of_log + (std::sqrt(rows) + 8) * u * value);
  // Element by element 2 (p - [target]) / rows, then rounded to the type of the logits.
  const at::Tensor bound =
      log.exp() * (of_log * 2 / rows) + exact.grad().abs() * (4 * u + c.rounded) + c.least;
  EXPECT_EQ(logits.grad().scalar_type(), c.type);
  EXPECT_LE(((logits.grad().to(at::kDouble) - exact.grad()).abs() / bound).max().item<double>(), 1);
}

// 700 rows of 10,000 classes are two parts of widened logits.
INSTANTIATE_TEST_SUITE_P(Types, CrossEntropyAgainstLibTorch,
                         ::testing::Values(Case{7, 5, at::kDouble, 0x1p-53},
                                           Case{96, 65, at::kFloat, 0x1p-24},
                                           Case{96, 65, at::kBFloat16, 0x1p-8},
                                           Case{700, 10000, at::kBFloat16, 0x1p-8},
                                           Case{96, 65, at::kHalf, 0x1p-11, 0x1p-25}));

TEST(CrossEntropy, OfEqualLogitsIsTheLogarithmOfTheirNumber) {
  const at::Tensor targets = at::zeros({3}, at::kLong);
  EXPECT_NEAR(CrossEntropy(at::zeros({3, 65}, at::kDouble), targets).item<double>(), std::log(65), 1e-15 * 8);
}

TEST(CrossEntropyDeathTest, RefusesOtherShapes) {
  EXPECT_DEATH(CrossEntropy(at::zeros({3, 2}), at::zeros({2}, at::kLong)), "targets of shape \\[2\\]");
}

}  // namespace
}  // namespace plait::models
