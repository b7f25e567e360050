// Token by token through the cache against the whole sequence.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <cmath>
#include <vector>

#include "models/gpt/gpt.h"
#include "models/key_value_cache.h"

namespace plait::gpt {
namespace {

using models::KeyValueCache;

GptOptions Options() {
  return {.vocab_size = 13, .block_size = 12, .n_layer = 3, .n_head = 2, .n_embd = 16, .bias = true};
}

Gpt Drawn(at::ScalarType type) {
  torch::manual_seed(8);
  Gpt gpt(Options(), type);
  // Larger than at the start of training, so that attention looks at some positions more than at others.
  for (const at::Tensor& parameter : gpt.parameters()) {
    if (parameter.dim() == 2) parameter.detach().mul_(12);
  }
  gpt.SetTraining(false);
  return gpt;
}

// Both ways do the same sums in other orders. Per block: norm, 16, attention of 12 and 8, 16, norm, 16, 64;
// logits and states are below 8, norms scale by less than 4.
constexpr double kBound = (3 * (16 + 16 + 8 + 12 + 16 + 16 + 16 + 64) + 16 + 16) * 8 * 4;

double Difference(const at::Tensor& a, const at::Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  return (a - b).abs().max().item<double>();
}

at::Tensor Continue(Gpt& gpt, const at::Tensor& tokens, KeyValueCache& cache) {
  const at::NoGradGuard no_grad;
  return models::RunOutput(gpt, {.inputs = tokens, .targets = {}}, {}, {.cache = &cache});
}

class Cached : public ::testing::TestWithParam<std::vector<std::int64_t>> {};

TEST_P(Cached, PiecesGiveTheLogitsOfTheWhole) {
  Gpt gpt = Drawn(at::kDouble);
  const at::Tensor tokens = at::randint(13, {2, 12}, at::kLong);
  const at::Tensor whole = gpt.Forward(tokens).detach();
  EXPECT_GT((whole.select(1, 1) - whole.select(1, 11)).abs().max().item<double>(), 0.1);
  KeyValueCache cache;
  std::int64_t first = 0;
  for (const std::int64_t length : GetParam()) {
    ASSERT_EQ(cache.length(), first);
    const at::Tensor logits = Continue(gpt, tokens.narrow(1, first, length), cache);
    EXPECT_LE(Difference(logits, whole.narrow(1, first, length)), kBound * 0x1p-53) << first;
    first += length;
  }
  EXPECT_EQ(first, 12);
}

INSTANTIATE_TEST_SUITE_P(Lengths, Cached,
                         ::testing::Values(std::vector<std::int64_t>{12}, std::vector<std::int64_t>{5, 7},
                                           std::vector<std::int64_t>{4, 1, 1, 3, 2, 1},
                                           std::vector<std::int64_t>(12, 1)));

TEST(KeyValueCache, BeginsAgainAfterClear) {
  Gpt gpt = Drawn(at::kDouble);
  const at::Tensor tokens = at::randint(13, {1, 12}, at::kLong);
  KeyValueCache cache;
  Continue(gpt, tokens, cache);
  cache.Clear();
  EXPECT_EQ(cache.length(), 0);
  const at::Tensor other = at::randint(13, {1, 5}, at::kLong);
  EXPECT_LE(Difference(Continue(gpt, other, cache), gpt.Forward(other).detach()), kBound * 0x1p-53);
}

TEST(KeyValueCache, HoldsHalfPrecision) {
  Gpt gpt = Drawn(at::kBFloat16);
  const at::Tensor tokens = at::randint(13, {1, 6}, at::kLong);
  KeyValueCache cache;
  Continue(gpt, tokens.narrow(1, 0, 5), cache);
  const at::Tensor last = Continue(gpt, tokens.narrow(1, 5, 1), cache).select(1, 0).to(at::kDouble);
  const at::Tensor whole = gpt.Forward(tokens).detach().select(1, 5).to(at::kDouble);
  // Some ten results a block are rounded, at sizes below 8.
  EXPECT_LE(Difference(last, whole), std::sqrt(3 * 10.0 + 2) * 8 * 0x1p-8);
}

TEST(KeyValueCacheDeathTest, RefusesTooManyPositionsAndAnotherBatch) {
  Gpt gpt = Drawn(at::kFloat);
  KeyValueCache cache;
  Continue(gpt, at::randint(13, {1, 9}, at::kLong), cache);
  EXPECT_DEATH(Continue(gpt, at::randint(13, {1, 4}, at::kLong), cache), "13 positions, the model has 12");
  EXPECT_DEATH(Continue(gpt, at::randint(13, {2, 1}, at::kLong), cache),
               "a batch of 2 in a cache of a batch of 1");
  KeyValueCache recorded;
  EXPECT_DEATH(models::RunBlocks(gpt, {.inputs = at::randint(13, {1, 4}, at::kLong), .targets = {}}, {},
                                 {.cache = &recorded}),
               "hold an at::NoGradGuard");
}

}  // namespace
}  // namespace plait::gpt
