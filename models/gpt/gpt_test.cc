// Outputs against loops over doubles, gradients against finite differences.
#include "models/gpt/gpt.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <cmath>
#include <vector>

#include "base/testing/nan_is_infinite.h"
#include "models/gpt/testing/loops.h"

namespace plait::gpt {
namespace {

constexpr double kEps = 0x1p-53, kFloatEps = 0x1p-24, kBFloat16Eps = 0x1p-8;

GptOptions Small(bool bias, Gelu gelu) {
  return {
      .vocab_size = 11, .block_size = 9, .n_layer = 2, .n_head = 3, .n_embd = 12, .bias = bias, .gelu = gelu};
}

// Weights of a size at which every part matters: products keep the size of their input, norms do not.
Gpt Drawn(const GptOptions& options, at::ScalarType type) {
  Gpt gpt(options, type);
  torch::manual_seed(5);
  for (const at::Tensor& parameter : gpt.parameters()) {
    const at::Tensor values = at::randn(parameter.sizes(), at::kDouble);
    const bool matrix = parameter.dim() == 2;
    parameter.detach().copy_(matrix ? values.div_(std::sqrt(parameter.size(1))) : values.mul_(0.3).add_(0.7));
  }
  return gpt;
}

std::vector<std::int64_t> RowOf(const at::Tensor& tokens, std::int64_t i) {
  const std::int64_t* data = tokens.const_data_ptr<std::int64_t>() + i * tokens.size(1);
  return {data, data + tokens.size(1)};
}

// The largest difference from the loops.
double Error(Gpt& gpt, const at::Tensor& tokens, double dt = 1) {
  const at::Tensor logits =
      models::RunOutput(gpt, {.inputs = tokens, .targets = {}}, {}, {.dt = dt}).detach().to(at::kDouble);
  EXPECT_EQ(logits.sizes(), (std::vector<std::int64_t>{tokens.size(0), tokens.size(1), 11}));
  double error = 0;
  for (std::int64_t i = 0; i < tokens.size(0); ++i) {
    const auto expected = LogitsByLoops(gpt, RowOf(tokens, i), dt);
    for (std::size_t t = 0; t < expected.size(); ++t) {
      for (std::size_t v = 0; v < expected[t].size(); ++v) {
        const double difference = std::abs(logits[i][t][v].item<double>() - expected[t][v]);
        error = std::max(error, base::NanIsInfinite(difference));
      }
    }
  }
  return error;
}

double Loss(Gpt& gpt, const models::Batch& batch) { return models::RunModel(gpt, batch).sum.item<double>(); }

struct Variant {
  bool bias;
  Gelu gelu;
};

class GptAgainstLoops : public ::testing::TestWithParam<Variant> {};

// In a block the longest chain is five sums (norm, 12, attention of 9 and 4, 12, then norm, 12, 48), on
// values of at most 8 in size. Norms scale by less than 4. Rounding errors of sums of n numbers of either
// sign are about sqrt(n) eps; here all are counted as if of the same sign.
constexpr double kChain = 2 * (12 + 12 + 4 + 9 + 12 + 12 + 12 + 48) + 12 + 12;
constexpr double kBound = kChain * 8 * 4;

TEST_P(GptAgainstLoops, ForwardInFloat64) {
  Gpt gpt = Drawn(Small(GetParam().bias, GetParam().gelu), at::kDouble);
  EXPECT_LE(Error(gpt, at::randint(11, {3, 9}, at::kLong)), kBound * kEps);
  EXPECT_LE(Error(gpt, at::randint(11, {2, 5}, at::kLong)), kBound * kEps);
  EXPECT_LE(Error(gpt, at::randint(11, {2, 5}, at::kLong), /*dt=*/0.375), kBound * kEps);
}

TEST_P(GptAgainstLoops, ForwardInFloat32) {
  Gpt gpt = Drawn(Small(GetParam().bias, GetParam().gelu), at::kFloat);
  EXPECT_LE(Error(gpt, at::randint(11, {3, 9}, at::kLong)), kBound * kFloatEps);
}

// bfloat16 sums are kept in float32; what is rounded are the results, some ten a block, at sizes up to 8,
// and a block passes errors on without growth but for its norms.
TEST_P(GptAgainstLoops, ForwardInBFloat16) {
  Gpt gpt = Drawn(Small(GetParam().bias, GetParam().gelu), at::kBFloat16);
  const at::Tensor tokens = at::randint(11, {3, 9}, at::kLong);
  EXPECT_EQ(gpt.Forward(tokens).scalar_type(), at::kBFloat16);
  EXPECT_LE(Error(gpt, tokens), std::sqrt(2 * 10 + 2) * 8 * kBFloat16Eps);
}

// (loss(w + h d) - loss(w - h d)) / 2h for a random direction d in every parameter.
TEST_P(GptAgainstLoops, GradientsAreThoseOfDifferences) {
  Gpt gpt = Drawn(Small(GetParam().bias, GetParam().gelu), at::kDouble);
  const models::Batch batch = {at::randint(11, {3, 9}, at::kLong), at::randint(11, {3, 9}, at::kLong)};
  models::RunModel(gpt, batch).sum.div(27).backward();
  for (const at::Tensor& parameter : gpt.parameters()) {
    const at::NoGradGuard no_grad;
    at::Tensor direction = at::randn_like(parameter);
    direction.div_(direction.norm());
    const at::Tensor start = parameter.clone();
    const double h = 1e-4;
    parameter.detach().copy_(start + direction * h);
    const double above = Loss(gpt, batch) / 27;
    parameter.detach().copy_(start - direction * h);
    const double below = Loss(gpt, batch) / 27;
    parameter.detach().copy_(start);
    const double expected = (above - below) / (2 * h);
    // Third derivatives below 60 give h^2 10; the rounding of a loss is divided by h.
    EXPECT_NEAR((parameter.grad() * direction).sum().item<double>(), expected, h * h * 10 + kBound * kEps / h)
        << parameter.sizes();
    EXPECT_GT(parameter.grad().norm().item<double>(), 1e-3) << parameter.sizes();
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, GptAgainstLoops,
                         ::testing::Values(Variant{true, Gelu::kTanh}, Variant{true, Gelu::kExact},
                                           Variant{false, Gelu::kExact}));

TEST(Gpt, LossIsTheSumOverValidTargets) {
  Gpt gpt = Drawn(Small(false, Gelu::kExact), at::kDouble);
  const models::Batch batch = {at::randint(11, {2, 9}, at::kLong), at::randint(11, {2, 9}, at::kLong)};
  batch.targets[1][4] = -100;
  double sum = 0;
  for (std::int64_t i = 0; i < 2; ++i) {
    const auto logits = LogitsByLoops(gpt, RowOf(batch.inputs, i));
    for (std::int64_t t = 0; t < 9; ++t) {
      const auto target = batch.targets[i][t].item<std::int64_t>();
      if (target < 0) continue;
      double total = 0;
      for (const double logit : logits[t]) total += std::exp(logit);
      sum += std::log(total) - logits[t][target];
    }
  }
  EXPECT_NEAR(Loss(gpt, batch), sum, 17 * kBound * kEps);
  EXPECT_EQ(models::RunModel(gpt, batch).count, 17);
}

TEST(GptDeathTest, RefusesWhatItCannotRead) {
  Gpt gpt(Small(false, Gelu::kExact), at::kFloat);
  EXPECT_DEATH(gpt.Forward(at::randint(11, {1, 10}, at::kLong)), "10 positions, the model has 9");
  EXPECT_DEATH(gpt.Forward(at::randn({1, 9})), "expected \\(batch, seq\\) of int64");
  EXPECT_DEATH(models::RunModel(gpt, {at::zeros({2, 9}, at::kLong), at::zeros({2, 8}, at::kLong)}),
               "targets of shape \\[2, 8\\]");
  EXPECT_DEATH(Gpt({.n_head = 5}, at::kFloat), "n_embd is 768; expected a multiple of n_head");
}

}  // namespace
}  // namespace plait::gpt
