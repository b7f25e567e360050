// Against LibTorch's own attention, values and gradients.
#include "models/attention/short_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/testing/same_on_threads.h"
#include "models/attention/kernels/head.h"

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

struct Precision {
  double sums;    // unit roundoff of sums
  double stored;  // of what is stored: scores, probabilities, their gradients, results
};

// Bounds of rounding, element by element, of the values and the gradient of `product`.
struct Bounds {
  at::Tensor values, gradients;
};

// From the inside out, with u = sums: a sum of products errs by 8 u sum |a b| (terms of independent signs:
// the standard deviation is below u sum |a b|), the exponential by 4 u of itself, the normalizer, a sum of
// one sign, by (sqrt(seq) + 4) u of itself (4 standard deviations of 16 sums of seq / 16 terms each). A
// probability has a relative error of twice the largest error of its row's scores. Behind it, what is
// multiplied passes its error on, and each stored result adds its own. 1e-30: probabilities that underflow.
Bounds BoundsOf(const at::Tensor& product, const at::Tensor& of_out, const Shape& s, const Precision& p) {
  const double u = p.sums, c = 8 * u, scale = 1 / std::sqrt(static_cast<double>(s.width));
  const std::vector<at::Tensor> parts =
      product.detach().view({s.batch, s.seq, 3, s.heads, s.width}).permute({2, 0, 3, 1, 4}).unbind(0);
  const at::Tensor &q = parts[0], &k = parts[1], &v = parts[2];
  const at::Tensor g = of_out.view({s.batch, s.seq, s.heads, s.width}).transpose(1, 2);
  const auto across = [](const at::Tensor& a, const at::Tensor& b) { return a.matmul(b.transpose(-1, -2)); };
  const auto down = [](const at::Tensor& a, const at::Tensor& b) { return a.transpose(-1, -2).matmul(b); };

  const at::Tensor later = at::ones({s.seq, s.seq}, at::kBool).triu(s.causal ? 1 : s.seq);
  const at::Tensor scores = across(q, k) * scale, seen = scores.masked_fill(later, -INFINITY);
  const at::Tensor largest = seen.amax(-1, true);
  const at::Tensor weights = (seen - largest).exp(), probabilities = weights / weights.sum(-1, true);
  // A score is scaled, and the largest subtracted: each rounds.
  const at::Tensor of_score =
      across(q.abs(), k.abs()) * (c * scale) + (scores.abs() + largest.abs()) * (3 * u + p.stored);
  const at::Tensor relative = of_score.masked_fill(later, 0).amax(-1, true) * 2 +
                              ((std::sqrt(static_cast<double>(s.seq)) + 8) * u + p.stored);
  const at::Tensor out = probabilities.matmul(v);
  const at::Tensor values = probabilities.matmul(v.abs()) * (relative + c) + out.abs() * p.stored;

  const at::Tensor of_p = across(g, v), of_p_error = across(g.abs(), v.abs()) * c + of_p.abs() * p.stored;
  const at::Tensor mean = (probabilities * of_p).sum(-1, true);
  const at::Tensor mean_error = (probabilities * (of_p.abs() * (relative + c) + of_p_error)).sum(-1, true);
  const at::Tensor of_s = probabilities * (of_p - mean);
  const at::Tensor of_s_error = of_s.abs() * (relative + p.stored) +
                                probabilities * (of_p_error + mean_error + (of_p.abs() + mean.abs()) * 4 * u);
  const at::Tensor dq = of_s.matmul(k), dk = down(of_s, q), dv = down(probabilities, g);
  const at::Tensor dq_error = (of_s_error + of_s.abs() * c).matmul(k.abs()) + dq.abs() * p.stored;
  const at::Tensor dk_error = down(of_s_error + of_s.abs() * c, q.abs()) + dk.abs() * p.stored;
  const at::Tensor dv_error = down(probabilities * (relative + c), g.abs()) + dv.abs() * p.stored;
  const at::Tensor gradients = at::stack({dq_error * scale, dk_error * scale, dv_error});  // (3, b, h, s, w)
  return {values.transpose(1, 2).reshape({s.batch * s.seq, s.heads * s.width}) + 1e-30,
          gradients.permute({1, 3, 0, 2, 4}).reshape(product.sizes()) + 1e-30};
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
  const Bounds bounds = BoundsOf(theirs, weights.to(at::kDouble), s, precision);
  ExpectNear(out.detach(), expected.detach(), bounds.values, what + ": values");
  const at::Tensor of_mine = torch::autograd::grad({out}, {mine}, {weights})[0];
  const at::Tensor of_theirs = torch::autograd::grad({expected}, {theirs}, {weights.to(at::kDouble)})[0];
  ExpectNear(of_mine, of_theirs, bounds.gradients, what + ": gradients");
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
