// Token by token through the cache against the whole sequence.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <cmath>
#include <vector>

#include "models/key_value_cache.h"
#include "models/llama/llama.h"

namespace plait::llama {
namespace {

constexpr std::int64_t kSymbols = 13, kPositions = 12, kLayers = 3, kWidth = 4;

struct Heads {
  std::int64_t queries, keys;
};

Llama Drawn(const Heads& heads, at::ScalarType type) {
  torch::manual_seed(8);
  Llama llama({.vocab_size = kSymbols,
               .max_seq_len = kPositions,
               .dim = heads.queries * kWidth,
               .n_layers = kLayers,
               .n_heads = heads.queries,
               .n_kv_heads = heads.keys,
               .hidden = 20,
               .rope_theta = 50},
              type);
  // Larger than at the start of training, so that attention looks at some positions more than at others.
  for (const at::Tensor& parameter : llama.parameters()) {
    if (parameter.dim() == 2 && parameter.size(0) != kSymbols) parameter.detach().mul_(12);
  }
  return llama;
}

// Both ways do the same sums in other orders. Per block: norm, product, attention of 12 and 4, product, norm,
// two products, 20; then norm and head. States are below 32, logits of unit variance below 8; norms make
// their input unit-sized, so that an error of a state is scaled by less than 4.
double Bound(std::int64_t dim) {
  return static_cast<double>(kLayers * (6 * dim + kPositions + kWidth + 20) + 2 * dim) * 32 * 4;
}

double Difference(const at::Tensor& a, const at::Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  return (a - b).abs().max().item<double>();
}

at::Tensor Continue(Llama& llama, const at::Tensor& tokens, models::KeyValueCache& cache) {
  const at::NoGradGuard no_grad;
  return models::RunOutput(llama, {.inputs = tokens, .targets = {}}, {}, {.cache = &cache});
}

class Cached : public ::testing::TestWithParam<std::vector<std::int64_t>> {};

TEST_P(Cached, PiecesGiveTheLogitsOfTheWhole) {
  for (const Heads& heads : {Heads{2, 2}, Heads{4, 1}, Heads{16, 4}, Heads{32, 8}}) {
    Llama llama = Drawn(heads, at::kDouble);
    const at::Tensor tokens = at::randint(kSymbols, {2, kPositions}, at::kLong);
    const at::Tensor whole = llama.Forward(tokens).detach();
    EXPECT_GT((whole.select(1, 1) - whole.select(1, 11)).abs().max().item<double>(), 0.1);
    models::KeyValueCache cache;
    std::int64_t first = 0;
    for (const std::int64_t length : GetParam()) {
      ASSERT_EQ(cache.length(), first);
      const at::Tensor logits = Continue(llama, tokens.narrow(1, first, length), cache);
      EXPECT_LE(Difference(logits, whole.narrow(1, first, length)), Bound(llama.options().dim) * 0x1p-53)
          << heads.keys << " of " << heads.queries << ", from " << first;
      first += length;
    }
    EXPECT_EQ(first, kPositions);
  }
}

INSTANTIATE_TEST_SUITE_P(Lengths, Cached,
                         ::testing::Values(std::vector<std::int64_t>{12}, std::vector<std::int64_t>{5, 7},
                                           std::vector<std::int64_t>{4, 1, 1, 3, 2, 1},
                                           std::vector<std::int64_t>(12, 1)));

TEST(LlamaCache, BeginsAgainAfterClear) {
  Llama llama = Drawn({4, 2}, at::kDouble);
  models::KeyValueCache cache;
  Continue(llama, at::randint(kSymbols, {1, kPositions}, at::kLong), cache);
  cache.Clear();
  const at::Tensor other = at::randint(kSymbols, {1, 5}, at::kLong);
  EXPECT_LE(Difference(Continue(llama, other, cache), llama.Forward(other).detach()), Bound(16) * 0x1p-53);
}

// The cache holds the two key heads, not one for each of the eight query heads.
TEST(LlamaCache, HoldsTheHeadsOfKeysOnly) {
  models::KeyValueCache cache;
  const at::Tensor two = at::ones({1, 2, 3, kWidth});
  Llama llama = Drawn({8, 2}, at::kFloat);
  Continue(llama, at::randint(kSymbols, {1, 4}, at::kLong), cache);
  EXPECT_EQ(cache.Append(0, two, two, kPositions).first.sizes(),
            (std::vector<std::int64_t>{1, 2, 7, kWidth}));
}

TEST(LlamaCacheDeathTest, RefusesTooManyPositions) {
  Llama llama = Drawn({2, 2}, at::kFloat);
  models::KeyValueCache cache;
  Continue(llama, at::randint(kSymbols, {1, 9}, at::kLong), cache);
  EXPECT_DEATH(Continue(llama, at::randint(kSymbols, {1, 4}, at::kLong), cache),
               "13 positions, the model has 12");
}

}  // namespace
}  // namespace plait::llama
