// Randomness of gates, and independence of how tokens are split over ranks.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "base/testing/same_on_threads.h"
#include "parallel/moe/elementwise.h"
#include "parallel/moe/gate.h"
#include "parallel/moe/testing/gate_cases.h"
#include "parallel/moe/testing/gate_loss.h"

namespace plait::moe {
namespace {

using testing::AllGates;
using testing::CountRows;
using testing::GateBatch;
using testing::GateCase;
using testing::LoadOf;
using testing::RandomBatch;

// Six standard deviations of a binomial distribution.
void ExpectShare(const at::Tensor& which, double expected) {
  EXPECT_NEAR(which.to(at::kDouble).mean().item<double>(), expected,
              6 * std::sqrt(expected * (1 - expected) / static_cast<double>(which.numel())));
}

constexpr std::int64_t kTokens = 37;
const std::vector<std::vector<std::int64_t>>& Splits() {
  static const std::vector<std::vector<std::int64_t>> splits = {{1, 0, 4, 31, 1}, {16, 21}, {0, 3, 3, 31}};
  return splits;
}

// Experts, weights and gradients of a batch in parts, each behind the other.
struct Results {
  at::Tensor experts, weights, gradient, noise_gradient, loss;
};

// Uses the loss statistics of `whole` if it is given.
Results RouteParts(const GateCase& gate, const GateBatch& batch, const std::vector<std::int64_t>& split,
                   const GlobalLoad* whole = nullptr) {
  std::vector<GateBatch> parts;
  std::vector<Routing> routings;
  for (std::int64_t first = 0; const std::int64_t count : split) {
    parts.push_back(batch.Part(first, count));
    routings.push_back(Route(gate.options, parts.back().logits, parts.back().context(gate.training)));
    first += count;
  }
  const GlobalLoad load = whole ? *whole : LoadOf(gate.options, routings);
  std::vector<at::Tensor> experts, weights, gradients, noise_gradients;
  at::Tensor loss = at::zeros({}, batch.logits.scalar_type());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const at::Tensor part = BalanceLoss(gate.options, routings[i], load);
    const at::Tensor factors = (at::arange(parts[i].logits.size(0)) * 0 + 0.5).unsqueeze(1);
    (part + (routings[i].weights * routings[i].weights * factors.to(part.scalar_type())).sum()).backward();
    loss += part.detach();
    experts.push_back(routings[i].experts);
    weights.push_back(routings[i].weights.detach());
    gradients.push_back(parts[i].logits.grad());
    const at::Tensor& noise = parts[i].noise_logits;
    noise_gradients.push_back(noise.grad().defined() ? noise.grad() : at::zeros_like(noise.detach()));
  }
  return {at::cat(experts), at::cat(weights), at::cat(gradients), at::cat(noise_gradients), loss};
}

TEST(GateSplit, TokensHaveTheSameBitsOnAnyRank) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    for (const int experts : {2, 3, 7, 8, 33, 64}) {
      for (const GateCase& gate : AllGates(experts, 2)) {
        const GateBatch batch = RandomBatch(kTokens, experts, type);
        const GlobalLoad load =
            LoadOf(gate.options, {Route(gate.options, batch.logits, batch.context(gate.training))});
        const Results whole = RouteParts(gate, batch, {kTokens}, &load);
        for (const auto& split : Splits()) {
          const Results parts = RouteParts(gate, batch, split, &load);
          EXPECT_TRUE(parts.experts.equal(whole.experts)) << gate.name << ", experts";
          EXPECT_TRUE(parts.weights.equal(whole.weights)) << gate.name << ", weights";
          EXPECT_TRUE(parts.gradient.equal(whole.gradient)) << gate.name << ", gradient of logits";
          EXPECT_TRUE(parts.noise_gradient.equal(whole.noise_gradient)) << gate.name << ", of noise logits";
        }
      }
    }
  }
}

TEST(GateSplit, LossAndGradientsAreThoseOfTheWholeBatch) {
  for (const GateCase& gate : AllGates(7, 3)) {
    const GateBatch batch = RandomBatch(kTokens, 7);
    const Results whole = RouteParts(gate, batch, {kTokens});
    for (const auto& split : Splits()) {
      const Results parts = RouteParts(gate, batch, split);
      // Sums of 37 * 7 terms of size 10 in another order.
      EXPECT_NEAR(parts.loss.item<double>(), whole.loss.item<double>(), 1e-11) << gate.name;
      EXPECT_LT((parts.gradient - whole.gradient).abs().max().item<double>(), 1e-12) << gate.name;
      EXPECT_LT((parts.noise_gradient - whole.noise_gradient).abs().max().item<double>(), 1e-12) << gate.name;
    }
  }
}

TEST(GateSplit, ElementsHaveTheSameBitsAnywhere) {
  const at::Tensor x = RandomBatch(1, 67, at::kFloat).logits.detach().flatten() * 4;
  for (const auto function : {Sigmoid, Softplus, NormalCdf}) {
    const at::Tensor whole = function(x);
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      EXPECT_TRUE(function(x.narrow(0, i, x.numel() - i)).equal(whole.narrow(0, i, x.numel() - i))) << i;
    }
  }
}

// A few roundings, also where the value is small.
TEST(Elementwise, IsPrecise) {
  const at::Tensor x = at::arange(-4000, 4000, at::kDouble) / 50;
  const auto check = [&](at::Tensor (*function)(const at::Tensor&), double (*exact)(double)) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      const at::Tensor in = x.to(type), y = function(in).to(at::kDouble);
      const double epsilon = type == at::kFloat ? 0x1p-23 : 0x1p-52;
      for (std::int64_t i = 0; i < x.numel(); ++i) {
        const double argument = in[i].item<double>(), expected = exact(argument);
        // An argument's rounding, here and in the formula, counts `argument` times where the function is an
        // exponential, and its square's for a normal distribution's tail; below the least normal number it
        // is absolute.
        const double relative = (8 + 2 * argument * argument) * epsilon * expected;
        ASSERT_NEAR(y[i].item<double>(), expected, relative + (type == at::kFloat ? 1e-38 : 1e-300))
            << argument;
      }
    }
  };
  check(Sigmoid, [](double v) { return 1 / (1 + std::exp(-v)); });
  check(Softplus, [](double v) { return v > 0 ? v + std::log1p(std::exp(-v)) : std::log1p(std::exp(v)); });
  check(NormalCdf, [](double v) { return std::erfc(-v / std::numbers::sqrt2) / 2; });
}

TEST(GatePermutation, OfTokens) {
  const at::Tensor order = at::tensor({4, 0, 6, 2, 1, 5, 3}, at::kLong);
  for (const GateCase& gate : AllGates(6, 2)) {
    const GateBatch batch = RandomBatch(7, 6);
    GateBatch other = batch;
    other.logits = batch.logits.detach().index_select(0, order);
    other.noise_logits = batch.noise_logits.detach().index_select(0, order);
    other.token_indices = batch.token_indices.index_select(0, order);
    const Routing a = Route(gate.options, batch.logits, batch.context(gate.training));
    const Routing b = Route(gate.options, other.logits, other.context(gate.training));
    EXPECT_TRUE(b.experts.equal(a.experts.index_select(0, order))) << gate.name;
    EXPECT_TRUE(b.weights.equal(a.weights.detach().index_select(0, order))) << gate.name;
  }
}

TEST(GatePermutation, OfExperts) {
  const at::Tensor order = at::tensor({4, 0, 2, 1, 5, 3}, at::kLong);
  for (const GateCase& gate : AllGates(6, 2)) {
    if (gate.training && gate.options.kind == GateKind::kNoisyTopK) continue;  // noise is that of a number
    const GateBatch batch = RandomBatch(9, 6);
    GateBatch other = batch;
    other.logits = batch.logits.detach().index_select(1, order);
    other.bias = batch.bias.index_select(0, order);
    const Routing a = Route(gate.options, batch.logits, batch.context(gate.training));
    const Routing b = Route(gate.options, other.logits, other.context(gate.training));
    const at::Tensor back = order.index({b.experts.clamp_min(0)}).masked_fill(b.experts.lt(0), -1);
    EXPECT_TRUE(back.equal(a.experts)) << gate.name;
    EXPECT_TRUE(b.weights.allclose(a.weights.detach(), 1e-14, 1e-15)) << gate.name;
    const auto loss = [&](const Routing& routing) {
      return BalanceLoss(gate.options, routing, LoadOf(gate.options, {routing})).item<double>();
    };
    EXPECT_NEAR(loss(a), loss(b), 1e-12) << gate.name;
  }
}

TEST(GateEvaluation, IsNotRandom) {
  for (const GateCase& gate : AllGates(6, 2)) {
    GateBatch batch = RandomBatch(200, 6);
    const auto route = [&](std::uint64_t seed) {
      return Route(gate.options, batch.logits, batch.context(gate.training, seed));
    };
    const Routing a = route(1), b = route(2);
    const bool random = gate.training &&
                        (gate.options.kind == GateKind::kNoisyTopK || gate.options.kind == GateKind::kGShard);
    EXPECT_EQ(!a.experts.equal(b.experts), random) << gate.name;
    EXPECT_EQ(a.experts.lt(0).any().item<bool>(), gate.training && gate.options.kind == GateKind::kGShard);
    if (gate.training) continue;
    GateContext context = {.training = false, .bias = batch.bias};  // no noise logits, no indices
    EXPECT_TRUE(Route(gate.options, batch.logits, context).weights.equal(a.weights)) << gate.name;
  }
}

// Of two experts the first is chosen where a + n_0 s_0 > b + n_1 s_1: with probability Phi((a - b) / |s|).
TEST(GateNoise, HasTheDeviationOfTheNoiseLogits) {
  constexpr std::int64_t kMany = 200000;
  const GateOptions options = {.kind = GateKind::kNoisyTopK, .experts = 2, .k = 1};
  for (const double gap : {0.0, 0.4, -1.1}) {
    const at::Tensor logits = at::tensor({gap, 0.0}, at::kDouble).expand({kMany, 2});
    const at::Tensor noise = at::tensor({0.3, -1.0}, at::kDouble).expand({kMany, 2});
    const Routing routing = Route(options, logits, {.seed = 3, .noise_logits = noise});
    const double s = std::hypot(std::log(1 + std::exp(0.3)), std::log(1 + std::exp(-1.0)));
    ExpectShare(routing.experts.eq(0), std::erfc(-gap / s / std::numbers::sqrt2) / 2);
  }
}

// The mean of P(x, e) over many draws is the share of tokens that have expert e (eq. 8 and 9).
TEST(GateNoise, LoadIsTheExpectedNumberOfRows) {
  constexpr std::int64_t kMany = 100000;
  const GateOptions options = {.kind = GateKind::kNoisyTopK, .experts = 5, .k = 2};
  const at::Tensor logits = at::tensor({0.5, -0.3, 0.1, 1.5, -1.0}, at::kDouble).expand({kMany, 5});
  const at::Tensor noise = at::tensor({0.3, 1.0, -1.0, 0.0, 0.5}, at::kDouble).expand({kMany, 5});
  const Routing routing = Route(options, logits, {.seed = 3, .noise_logits = noise});
  const at::Tensor rows = CountRows(routing.experts, 5).to(at::kDouble), load = LossStatistics(routing)[1];
  // Six deviations of a number that is 0 or 1; P(x, e) itself varies less.
  EXPECT_LT((rows - load).abs().max().item<double>(), 6 * std::sqrt(2 * kMany * 0.25)) << rows << load;
}

TEST(GateGShard, KeepsTheSecondExpertWithTwiceItsWeight) {
  constexpr std::int64_t kMany = 200000;
  const GateOptions options = {.kind = GateKind::kGShard, .experts = 3, .k = 2};
  for (const double gap : {0.0, 0.5, 3.0}) {
    const at::Tensor logits = at::tensor({gap, -9.0, 0.0}, at::kDouble).expand({kMany, 3});
    const Routing routing = Route(options, logits, {.seed = 3});
    const at::Tensor second = routing.experts.select(1, 1);
    EXPECT_TRUE(routing.experts.select(1, 0).eq(0).all().item<bool>());
    EXPECT_TRUE(second.eq(2).logical_or(second.eq(-1)).all().item<bool>());
    ExpectShare(second.eq(2), 2 / (1 + std::exp(gap)));
  }
}

TEST(GateJitter, IsUniformAroundOneAndTheSameAnywhere) {
  constexpr double kAmount = 0.25;
  const at::Tensor x = at::full({2000, 100}, 3.0, at::kDouble).requires_grad_(true);
  const at::Tensor indices = at::arange(2000, at::kLong);
  const at::Tensor y = Jitter(x, kAmount, 5, indices), factor = y.detach() / 3;
  EXPECT_TRUE(Jitter(x.narrow(0, 7, 90), kAmount, 5, indices.narrow(0, 7, 90)).equal(y.narrow(0, 7, 90)));
  EXPECT_FALSE(Jitter(x, kAmount, 6, indices).equal(y));
  EXPECT_TRUE(Jitter(x, 0, 5, indices).equal(x));
  for (const double quantile : {0.1, 0.5, 0.9}) {
    ExpectShare(factor.lt(1 - kAmount + 2 * kAmount * quantile), quantile);
  }
  EXPECT_GT(factor.min().item<double>(), 1 - kAmount);
  EXPECT_LT(factor.max().item<double>(), 1 + kAmount);
  y.sum().backward();
  EXPECT_TRUE(x.grad().allclose(factor, 1e-14));
}

// Rows 2, 5 and 6 of 9 are not finite.
TEST(GateNotFinite, RowsHaveNoExpertAndOthersTheirOwnGradients) {
  const at::Tensor good = at::tensor({0, 1, 3, 4, 7, 8}, at::kLong), bad = at::tensor({2, 5, 6}, at::kLong);
  for (const GateCase& gate : AllGates(6, 2)) {
    GateBatch batch = RandomBatch(9, 6), clean = batch;
    const at::Tensor logits = batch.logits.detach();
    clean.logits = logits.index_select(0, good).requires_grad_(true);
    clean.noise_logits = batch.noise_logits.detach().index_select(0, good).requires_grad_(true);
    clean.token_indices = batch.token_indices.index_select(0, good);
    const double infinity = std::numeric_limits<double>::infinity();
    logits[2][3] = std::nan("");
    logits[5][0] = infinity;
    logits[6][5] = -infinity;
    const Routing routing = Route(gate.options, batch.logits, batch.context(gate.training));
    const Routing expected = Route(gate.options, clean.logits, clean.context(gate.training));
    EXPECT_EQ(routing.not_finite, 3) << gate.name;
    EXPECT_EQ(expected.not_finite, 0) << gate.name;
    EXPECT_TRUE(routing.experts.index_select(0, good).equal(expected.experts)) << gate.name;
    EXPECT_TRUE(routing.experts.index_select(0, bad).eq(-1).all().item<bool>()) << gate.name;
    EXPECT_TRUE(routing.weights.detach().index_select(0, good).equal(expected.weights)) << gate.name;
    EXPECT_TRUE(routing.weights.index_select(0, bad).isnan().all().item<bool>()) << gate.name;
    GlobalLoad load = LoadOf(gate.options, {routing}), same = LoadOf(gate.options, {expected});
    EXPECT_TRUE(load.rows_of_expert.equal(same.rows_of_expert)) << gate.name;
    if (load.statistics.defined()) {
      EXPECT_TRUE(load.statistics.allclose(same.statistics, 1e-14)) << gate.name;
    }
    same.tokens = load.tokens;
    const at::Tensor loss = BalanceLoss(gate.options, routing, load);
    EXPECT_TRUE(std::isnan(loss.item<double>())) << gate.name;
    (loss + routing.weights.square().sum()).backward();
    (BalanceLoss(gate.options, expected, same) + expected.weights.square().sum()).backward();
    const at::Tensor gradient = batch.logits.grad();
    EXPECT_TRUE(gradient.index_select(0, good).allclose(clean.logits.grad(), 1e-13, 1e-14)) << gate.name;
    EXPECT_TRUE(gradient.index_select(0, bad).isnan().all().item<bool>()) << gate.name << gradient;
    if (clean.noise_logits.grad().defined()) {
      EXPECT_TRUE(
          batch.noise_logits.grad().index_select(0, good).allclose(clean.noise_logits.grad(), 1e-13, 1e-14));
    }
  }
}

TEST(GateNotFinite, NoiseLogitsCount) {
  const GateOptions options = {.kind = GateKind::kNoisyTopK, .experts = 4, .k = 2};
  const GateBatch batch = RandomBatch(3, 4, at::kFloat);
  batch.noise_logits.detach()[1][2] = std::nan("");
  const Routing routing = Route(options, batch.logits, batch.context(true));
  EXPECT_EQ(routing.not_finite, 1);
  EXPECT_TRUE(routing.experts.lt(0).any(1).equal(at::tensor({0, 1, 0}, at::kLong).to(at::kBool)));
}

TEST(Elementwise, ThreadsDoNotMatter) {
  const at::Tensor x = at::linspace(-30, 30, 100001, at::kDouble).requires_grad_(true);
  for (const auto function : {Sigmoid, Softplus, NormalCdf}) {
    ExpectSameOnThreads(2, [&] {
      const at::Tensor y = function(x);
      return std::vector<at::Tensor>{torch::autograd::grad({y}, {x}, {y.detach()})[0], y.detach()};
    });
  }
}

TEST(Elementwise, GradientsAreNotDifferentiatedAgain) {
  const at::Tensor x = at::linspace(-3, 3, 7, at::kDouble).requires_grad_(true);
  for (const auto function : {Sigmoid, Softplus, NormalCdf}) {
    EXPECT_THROW(torch::autograd::grad({function(x).sum()}, {x}, {}, {}, /*create_graph=*/true), c10::Error);
  }
}

TEST(BalanceLoss, ItsGradientIsNotDifferentiatedAgain) {
  Routing routing;
  routing.logits = at::ones({3, 4}, at::kDouble).requires_grad_(true);
  const at::Tensor loss =
      BalanceLoss({.experts = 4, .balance_weight = 0, .z_weight = 0.1}, routing, GlobalLoad());
  EXPECT_THROW(torch::autograd::grad({loss}, {routing.logits}, {}, {}, /*create_graph=*/true), c10::Error);
}

}  // namespace
}  // namespace plait::moe
