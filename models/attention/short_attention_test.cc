// Against LibTorch's own attention, values and gradients.
#include "models/attention/short_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/testing/same_on_threads.h"
#include "models/attention/attention.h"
#include "models/attention/kernels/head.h"
#include "models/attention/testing/head_bounds.h"
#include "models/key_value_cache.h"

namespace plait::attention {
namespace {

struct Shape {
  std::int64_t batch, heads, seq, width;
  bool causal = true;

  AttentionSizes sizes() const { return {.batch = batch, .heads = heads, .causal = causal}; }
};

// One position, odd sizes, blocks of 32 queries that are whole and not, rows of several vectors.
const std::vector<Shape> kShapes = {{1, 1, 1, 1},   {3, 2, 5, 4},   {2, 3, 33, 7},   {12, 4, 64, 32},
                                    {1, 2, 65, 16}, {1, 1, 7, 100}, {2, 1, 100, 20}, {1, 1, 256, 8}};

at::Tensor Numbers(const std::vector<std::int64_t>& sizes, double seed) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  const at::Tensor n = at::arange(count, at::kDouble) + seed;
  return at::sin(n * n * 0.37).view(sizes);
}

at::Tensor Products(const Shape& s, double seed) {
  return Numbers({s.batch * s.seq, 3 * s.heads * s.width}, seed);
}

at::Tensor Reference(const at::Tensor& product, const Shape& s) {
  const std::vector<at::Tensor> parts = product.view({s.batch, s.seq, 3, s.heads, s.width}).unbind(2);
  return at::scaled_dot_product_attention(parts[0].transpose(1, 2), parts[1].transpose(1, 2),
                                          parts[2].transpose(1, 2), {}, 0, s.causal)
      .transpose(1, 2)
      .reshape({s.batch * s.seq, s.heads * s.width});
}

// Parts that lie side by side in rows (batch seq, parts heads width), as (batch, heads, seq, width) each; and back.
std::vector<at::Tensor> Heads(const at::Tensor& rows, std::int64_t parts, const Shape& s) {
  return rows.view({s.batch, s.seq, parts, s.heads, s.width}).permute({2, 0, 3, 1, 4}).unbind(0);
}
at::Tensor RowsOf(const std::vector<at::Tensor>& parts, const Shape& s) {
  return at::stack(parts).permute({1, 3, 0, 2, 4}).reshape({s.batch * s.seq, -1});
}

void ExpectNear(const at::Tensor& a, const at::Tensor& exact, const at::Tensor& bound,
                const std::string& what) {
  EXPECT_LE(((a.to(at::kDouble) - exact).abs() / bound).max().item<double>(), 1) << what;
}

void ExpectIsLibTorchs(const Shape& s, at::ScalarType type, const Precision& precision,
                       const at::Tensor& product) {
  const std::string what = std::to_string(s.batch) + " x " + std::to_string(s.heads) + " heads, " +
                           std::to_string(s.seq) + " positions, width " + std::to_string(s.width) +
                           (s.causal ? ", causal" : ", full");
  const at::Tensor mine = product.to(type).requires_grad_(true);
  const at::Tensor theirs = mine.detach().to(at::kDouble).requires_grad_(true);
  const at::Tensor weights = Numbers({s.batch * s.seq, s.heads * s.width}, 2).to(type);
  const at::Tensor out = ShortAttention(mine, s.sizes());
  const at::Tensor expected = Reference(theirs, s);
  ASSERT_EQ(out.scalar_type(), type);
  const HeadBounds bounds = BoundsOfHeads(Heads(theirs.detach(), 3, s),
                                          Heads(weights.to(at::kDouble), 1, s)[0], s.causal, precision);
  ExpectNear(out.detach(), expected.detach(), RowsOf({bounds.values}, s), what + ": values");
  const at::Tensor of_mine = torch::autograd::grad({out}, {mine}, {weights})[0];
  const at::Tensor of_theirs = torch::autograd::grad({expected}, {theirs}, {weights.to(at::kDouble)})[0];
  ExpectNear(of_mine, of_theirs, RowsOf({bounds.of_query, bounds.of_key, bounds.of_value}, s),
             what + ": gradients");
}

TEST(ShortAttentionTest, ValuesAndGradientsAreThoseOfFloat64) {
  for (Shape shape : kShapes) {
    const at::Tensor product = Products(shape, 1);
    for (const bool causal : {true, false}) {
      shape.causal = causal;
      // The reference rounds as well.
      ExpectIsLibTorchs(shape, at::kDouble, {2 * 0x1p-53, 2 * 0x1p-53}, product);
      ExpectIsLibTorchs(shape, at::kFloat, {0x1p-24, 0x1p-24}, product);
      ExpectIsLibTorchs(shape, at::kBFloat16, {0x1p-24, 0x1p-8}, product);
    }
  }
}

// Scores of some hundreds, of both signs: exponentials neither overflow nor turn into NaN.
TEST(ShortAttentionTest, LargeScores) {
  const Shape s{1, 2, 40, 16};
  ExpectIsLibTorchs(s, at::kFloat, {0x1p-24, 0x1p-24}, Products(s, 5) * 30);
}

TEST(ShortAttentionTest, LaterTokensDoNotMatter) {
  const Shape s{1, 2, 45, 4};
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    const at::Tensor product = Products(s, 4).to(type);
    const at::Tensor before = ShortAttention(product, s.sizes());
    product[s.seq - 1].add_(1);
    const at::Tensor after = ShortAttention(product, s.sizes());
    EXPECT_TRUE(after.narrow(0, 0, s.seq - 1).equal(before.narrow(0, 0, s.seq - 1)));
    EXPECT_FALSE(after[s.seq - 1].equal(before[s.seq - 1]));
  }
}

TEST(ShortAttentionTest, IsForShortSequencesOnProcessors) {
  const auto uses = [](std::int64_t seq, const at::TensorOptions& options) {
    return UsesShortAttention(at::empty({2 * seq, 12}, options), {.batch = 2, .heads = 2});
  };
  EXPECT_TRUE(uses(kLongestShortSequence, at::kBFloat16));
  EXPECT_FALSE(uses(kLongestShortSequence + 1, at::kBFloat16));
  EXPECT_FALSE(uses(8, at::kDouble));
  // As a processor would, for dry runs.
  EXPECT_TRUE(uses(8, at::TensorOptions(at::kBFloat16).device(at::kMeta)));
}

TEST(ShortAttentionTest, ItsGradientIsNotDifferentiatedAgain) {
  const Shape s{1, 2, 9, 4};
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const at::Tensor product = Products(s, 3).to(type).requires_grad_(true);
    const at::Tensor out = ShortAttention(product, s.sizes());
    EXPECT_THROW(torch::autograd::grad({out}, {product}, {out.detach()}, {}, /*create_graph=*/true),
                 c10::Error);
  }
}

// Queries that go on from a cache see all keys of it and, without a causal mask, all of their own.
TEST(AttentionTest, WithoutAMaskLaterKeysOfACacheAreSeen) {
  const auto draw = [] { return at::randn({2, 3, 5, 4}, at::kDouble); };
  const at::Tensor query = draw(), key = draw(), value = draw();
  for (const bool causal : {false, true}) {
    const at::Tensor whole = at::scaled_dot_product_attention(query, key, value, {}, 0, causal);
    for (const bool keeps_probabilities : {false, true}) {
      models::KeyValueCache cache;
      const auto piece = [&](std::int64_t first, std::int64_t count) {
        const auto part = [&](const at::Tensor& x) { return x.narrow(2, first, count); };
        return Attention(
            part(query), part(key), part(value),
            {.causal = causal, .keeps_probabilities = keeps_probabilities, .cache = &cache, .capacity = 5});
      };
      piece(0, 2);
      // Some roundings of numbers of order 1.
      EXPECT_LE((piece(2, 3) - whole.narrow(2, 2, 3)).abs().max().item<double>(), 0x1p-46)
          << causal << keeps_probabilities;
    }
  }
}

TEST(ShortAttentionTest, ThreadsDoNotMatter) {
  const Shape s{.batch = 6, .heads = 2, .seq = 64, .width = 32};
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const bool own =
        type == at::kFloat ? UsableHeads<float>() != nullptr : UsableHeads<BFloat16>() != nullptr;
    if (!own) continue;  // LibTorch's promise no such thing
    const at::Tensor product = Products(s, 3).to(type).requires_grad_(true);
    ExpectSameOnThreads(2, [&] {
      const at::Tensor out = ShortAttention(product, s.sizes());
      return std::vector<at::Tensor>{torch::autograd::grad({out}, {product}, {out.detach()})[0],
                                     out.detach()};
    });
  }
}

}  // namespace
}  // namespace plait::attention
