// Against LibTorch's own attention, values and gradients.
#include "models/attention/short_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/sin.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <string>
#include <vector>

namespace plait::attention {
namespace {

struct Shape {
  std::int64_t batch, heads, seq, width;
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
                                          parts[2].transpose(1, 2), {}, 0, /*is_causal=*/true)
      .transpose(1, 2)
      .reshape({s.batch * s.seq, s.heads * s.width});
}

void ExpectNear(const at::Tensor& a, const at::Tensor& b, double tolerance, const std::string& what) {
  const double difference = (a.to(at::kDouble) - b).abs().max().item<double>();
  EXPECT_LE(difference, tolerance * b.abs().max().item<double>()) << what;
}

// Numbers are below 1 in size, so a score errs by at most (width + 2) u sqrt(width), which is a relative
// error of the probabilities; sums over seq and width add theirs. A gradient goes through one softmax and two
// products more. `u` is the unit roundoff of sums, `rounded` that of what is stored.
double Tolerance(const Shape& s, double u, double rounded) {
  const double width = static_cast<double>(s.width), seq = static_cast<double>(s.seq);
  return ((width + 2) * std::sqrt(width) + seq + 8) * u * 4 + 4 * rounded;
}

void ExpectIsLibTorchs(const Shape& s, at::ScalarType type, double u, double rounded) {
  const std::string what = std::to_string(s.batch) + " x " + std::to_string(s.heads) + " heads, " +
                           std::to_string(s.seq) + " positions, width " + std::to_string(s.width);
  const at::Tensor mine = Products(s, 1).to(type).requires_grad_(true);
  const at::Tensor theirs = mine.detach().to(at::kDouble).requires_grad_(true);
  const at::Tensor weights = Numbers({s.batch * s.seq, s.heads * s.width}, 2).to(type);
  const at::Tensor out = ShortCausalAttention(mine, {.batch = s.batch, .heads = s.heads});
  const at::Tensor expected = Reference(theirs, s);
  ASSERT_EQ(out.scalar_type(), type);
  const double tolerance = Tolerance(s, u, rounded);
  ExpectNear(out.detach(), expected, tolerance, what + ": values");
  const at::Tensor of_mine = torch::autograd::grad({out}, {mine}, {weights})[0];
  const at::Tensor of_theirs = torch::autograd::grad({expected}, {theirs}, {weights.to(at::kDouble)})[0];
  // One position has nothing to choose from: queries and keys have no gradient, and no size to compare with.
  ExpectNear(of_mine, of_theirs, 2 * tolerance, what + ": gradients");
}

TEST(ShortAttentionTest, ValuesAndGradientsAreThoseOfFloat64) {
  for (const Shape& shape : kShapes) {
    ExpectIsLibTorchs(shape, at::kDouble, 0x1p-53, 0x1p-53);
    ExpectIsLibTorchs(shape, at::kFloat, 0x1p-24, 0x1p-24);
    ExpectIsLibTorchs(shape, at::kBFloat16, 0x1p-24, 0x1p-8);
  }
}

// Scores of some hundreds, of both signs: exponentials neither overflow nor turn into NaN.
TEST(ShortAttentionTest, LargeScores) {
  const Shape s{1, 2, 40, 16};
  const at::Tensor exact = (Products(s, 5) * 30).to(at::kFloat);
  const at::Tensor out = ShortCausalAttention(exact, {.batch = s.batch, .heads = s.heads});
  // A score of up to 30 * 30 * sqrt(16) = 3600 errs by 18 * 2^-24 of that: 0.004.
  ExpectNear(out, Reference(exact.to(at::kDouble), s), 0.01, "scores of up to 3600");
}

TEST(ShortAttentionTest, LaterTokensDoNotMatter) {
  const Shape s{1, 2, 45, 4};
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    const at::Tensor product = Products(s, 4).to(type);
    const at::Tensor before = ShortCausalAttention(product, {.batch = 1, .heads = s.heads});
    product[s.seq - 1].add_(1);
    const at::Tensor after = ShortCausalAttention(product, {.batch = 1, .heads = s.heads});
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
  EXPECT_FALSE(uses(8, at::TensorOptions(at::kBFloat16).device(at::kMeta)));
}

}  // namespace
}  // namespace plait::attention
