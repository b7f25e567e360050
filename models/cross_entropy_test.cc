// Sum and gradient against LibTorch's in float64.
#include "models/cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace plait::models {
namespace {

struct Case {
  std::int64_t rows, classes;
  at::ScalarType type;
  double rounded;    // unit roundoff of the gradient's type
  double least = 0;  // half its smallest positive number
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
  // A log-probability is (x - largest) - log(sum): two roundings of at most L u, with L the largest of all
  // rows, and the relative error of the sum of `classes` exponentials, (sqrt(classes) + 8) u (terms of one
  // sign in vectors: 4 standard deviations), which is an absolute one of its logarithm. The loss is a sum of
  // one sign, too. As softmax is the exponential of this, that is a probability's relative error.
  const double u = c.type == at::kDouble ? 0x1p-53 : 0x1p-24;
  const std::int64_t first = c.ignores ? 1 : 0;  // row 0 is NaN
  const auto valid = [&](const at::Tensor& rows) { return rows.narrow(0, first, c.rows - first); };
  const at::Tensor log = at::log_softmax(valid(exact.detach()), 1);
  const double largest = -log.min().item<double>();
  const double of_log = (4 * largest + std::sqrt(static_cast<double>(c.classes)) + 8) * u;
  EXPECT_EQ(loss.sum.scalar_type(), c.type == at::kDouble ? at::kDouble : at::kFloat);
  const double value = expected.item<double>(), rows = static_cast<double>(c.rows);
  EXPECT_NEAR(loss.sum.item<double>(), value, rows * of_log + (std::sqrt(rows) + 8) * u * value);
  // Element by element 2 (p - [target]), then rounded to the type of the logits.
  const at::Tensor gradient = valid(exact.grad());
  const at::Tensor bound = log.exp() * (of_log * 2) + gradient.abs() * (4 * u + c.rounded) + c.least;
  EXPECT_EQ(logits.grad().scalar_type(), c.type);
  const at::Tensor mine = valid(logits.grad()).to(at::kDouble);
  EXPECT_FALSE(mine.isnan().any().item<bool>());
  EXPECT_LE(((mine - gradient).abs() / bound).nan_to_num(0).max().item<double>(), 1);
  EXPECT_TRUE(mine.masked_select(gradient.eq(0)).eq(0).all().item<bool>()) << "rows that are ignored";
  EXPECT_EQ(logits.grad()[0].equal(at::zeros_like(logits[0])), c.ignores);
}

// 700 rows of 10,000 classes are two parts of widened logits.
INSTANTIATE_TEST_SUITE_P(
    Types, CrossEntropyAgainstLibTorch,
    ::testing::Values(Case{7, 5, at::kDouble, 0x1p-53}, Case{96, 65, at::kFloat, 0x1p-24},
                      Case{33, 2, at::kFloat, 0x1p-24}, Case{40, 3001, at::kFloat, 0x1p-24},
                      Case{40, 128, at::kBFloat16, 0x1p-8}, Case{96, 65, at::kBFloat16, 0x1p-8},
                      Case{700, 10000, at::kBFloat16, 0x1p-8}, Case{96, 65, at::kHalf, 0x1p-11, 0x1p-25},
                      Case{10, 5, at::kDouble, 0x1p-53, 0, true}, Case{96, 65, at::kFloat, 0x1p-24, 0, true},
                      Case{700, 10000, at::kBFloat16, 0x1p-8, 0, true}));

TEST(CrossEntropySum, OfEqualLogitsIsTheLogarithmOfTheirNumber) {
  const at::Tensor targets = at::zeros({3}, at::kLong);
  EXPECT_NEAR(CrossEntropySum(at::zeros({3, 65}, at::kDouble), targets).sum.item<double>(), 3 * std::log(65),
              1e-15 * 8 * 3);
}

TEST(CrossEntropySum, ItsGradientIsNotDifferentiatedAgain) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const at::Tensor logits = at::randn({3, 5}, type).requires_grad_(true);
    const LossSum loss = CrossEntropySum(logits, at::zeros({3}, at::kLong));
    EXPECT_THROW(loss.sum.backward({}, /*retain_graph=*/true, /*create_graph=*/true), c10::Error);
  }
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

// Logits whose exponential overflows float32, and a class of probability 0.
TEST(CrossEntropySum, OfLargeLogits) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    const at::Tensor logits = at::tensor({1000.0, 900.0, -inf, -2000.0, -2000.0, -3000.0}, at::kDouble)
                                  .view({2, 3})
                                  .to(type)
                                  .requires_grad_(true);
    const LossSum loss = CrossEntropySum(logits, at::tensor({1, 0}, at::kLong));
    // 1000 - 900 exactly, and log(2) + 1e-44.
    EXPECT_NEAR(loss.sum.item<double>(), 100 + std::log(2), 4e-6);
    loss.sum.backward();
    EXPECT_TRUE(logits.grad()
                    .to(at::kDouble)
                    .allclose(at::tensor({1.0, -1.0, 0.0, -0.5, 0.5, 0.0}, at::kDouble).view({2, 3}),
                              /*rtol=*/0, /*atol=*/1e-6))
        << logits.grad();
  }
}

TEST(CrossEntropySum, OfANaNIsOne) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    for (const std::int64_t place : {0, 39, 64, 99}) {  // in whole groups of vectors, and behind them
      at::Tensor logits = at::zeros({2, 100}, type);
      logits[1][place] = std::numeric_limits<double>::quiet_NaN();
      logits.requires_grad_(true);
      const LossSum loss = CrossEntropySum(logits, at::zeros({2}, at::kLong));
      EXPECT_TRUE(std::isnan(loss.sum.item<double>())) << place;
      loss.sum.backward();
      EXPECT_TRUE(logits.grad()[1].isnan().all().item<bool>()) << place;
      EXPECT_FALSE(logits.grad()[0].isnan().any().item<bool>()) << place;
    }
  }
}

TEST(CrossEntropySum, RefusesATargetThatIsNoClass) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    EXPECT_THROW(CrossEntropySum(at::zeros({2, 5}, type), at::full({2}, 5, at::kLong)), c10::Error);
  }
}

TEST(CrossEntropySum, TakesTheCountThatWasKnownBefore) {
  for (const std::int64_t ignored : {0, 3}) {
    const at::Tensor logits = at::randn({8, 5}), targets = at::randint(5, {8}, at::kLong);
    targets.narrow(0, 0, ignored).fill_(-1);
    const LossSum counted = CrossEntropySum(logits, targets),
                  told = CrossEntropySum(logits, targets, 8 - ignored);
    EXPECT_EQ(told.count, 8 - ignored);
    EXPECT_TRUE(told.sum.equal(counted.sum));
  }
  const at::Tensor one = at::full({1}, -1, at::kLong);
  EXPECT_DEATH(CrossEntropySum(at::zeros({3, 2}), one.expand({3}), 2), "0 valid targets, not 2");
}

TEST(CrossEntropySumDeathTest, RefusesOtherShapes) {
  EXPECT_DEATH(CrossEntropySum(at::zeros({3, 2}), at::zeros({2}, at::kLong)), "targets of shape \\[2\\]");
}

}  // namespace
}  // namespace plait::models
