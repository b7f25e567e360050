// Against LibTorch's own attention, values and gradients.
#include "models/gpt/short_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/sin.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

namespace plait::gpt {
namespace {

constexpr std::int64_t kBatch = 3, kHeads = 2, kSeq = 5, kWidth = 4;

at::Tensor Numbers(const std::vector<std::int64_t>& sizes, double seed) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  const at::Tensor n = at::arange(count, at::kDouble) + seed;
  return at::sin(n * n * 0.37).view(sizes);
}

at::Tensor Reference(const at::Tensor& product) {
  const std::vector<at::Tensor> parts = product.view({kBatch, kSeq, 3, kHeads, kWidth}).unbind(2);
  return at::scaled_dot_product_attention(parts[0].transpose(1, 2), parts[1].transpose(1, 2),
                                          parts[2].transpose(1, 2), {}, 0, /*is_causal=*/true)
      .transpose(1, 2)
      .reshape({kBatch * kSeq, kHeads * kWidth});
}

// Sums of at most kSeq * kWidth products of numbers below 2, through a softmax and back.
constexpr double kRoundings = 64;

void ExpectNear(const at::Tensor& a, const at::Tensor& b, double epsilon) {
  EXPECT_LE((a - b).abs().max().item<double>(), kRoundings * epsilon * b.abs().max().item<double>());
}

TEST(ShortAttentionTest, ValuesAndGradientsAreLibTorchs) {
  const at::Tensor mine = Numbers({kBatch * kSeq, 3 * kHeads * kWidth}, 1).requires_grad_(true);
  const at::Tensor theirs = mine.detach().clone().requires_grad_(true);
  const at::Tensor weights = Numbers({kBatch * kSeq, kHeads * kWidth}, 2);
  const at::Tensor out = ShortCausalAttention(mine, {.batch = kBatch, .heads = kHeads});
  const at::Tensor expected = Reference(theirs);
  ExpectNear(out, expected, 0x1p-53);
  (out * weights).sum().backward();
  (expected * weights).sum().backward();
  ExpectNear(mine.grad(), theirs.grad(), 0x1p-53);
}

TEST(ShortAttentionTest, HalfPrecisionStaysWithinItsRounding) {
  const at::Tensor exact = Numbers({kBatch * kSeq, 3 * kHeads * kWidth}, 3).to(at::kBFloat16);
  const at::Tensor mine = exact.clone().requires_grad_(true);
  const at::Tensor theirs = exact.to(at::kDouble).requires_grad_(true);
  const at::Tensor out = ShortCausalAttention(mine, {.batch = kBatch, .heads = kHeads});
  EXPECT_EQ(out.scalar_type(), at::kBFloat16);
  const at::Tensor expected = Reference(theirs);
  // Scores, probabilities and sums are each rounded to 8 bits.
  ExpectNear(out.to(at::kDouble), expected, 0x1p-9 / 8);
  out.sum().backward();
  expected.sum().backward();
  ExpectNear(mine.grad().to(at::kDouble), theirs.grad(), 0x1p-9 / 4);
}

TEST(ShortAttentionTest, LaterTokensDoNotMatter) {
  const at::Tensor product = Numbers({kSeq, 3 * kHeads * kWidth}, 4);
  const at::Tensor before = ShortCausalAttention(product, {.batch = 1, .heads = kHeads});
  product[kSeq - 1].add_(1);
  const at::Tensor after = ShortCausalAttention(product, {.batch = 1, .heads = kHeads});
  EXPECT_TRUE(after.narrow(0, 0, kSeq - 1).equal(before.narrow(0, 0, kSeq - 1)));
  EXPECT_FALSE(after[kSeq - 1].equal(before[kSeq - 1]));
}

}  // namespace
}  // namespace plait::gpt
