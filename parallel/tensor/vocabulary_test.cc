// Split vocabularies against whole ones, LibTorch's operators in float64 on one rank.
#include "parallel/tensor/vocabulary.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>
#include <vector>

#include "comm/testing/world.h"
#include "parallel/tensor/collectives.h"
#include "parallel/tensor/testing/numbers.h"

namespace plait::tensor_parallel {
namespace {

using comm::testing::World;
using testing::Random;

constexpr std::int64_t kVocabulary = 11, kWidth = 3;  // 11 is no multiple of 2, 3 or 4

const TensorAxis& Axis() {
  static const TensorAxis axis(World(), {});
  return axis;
}
at::Tensor Part(const at::Tensor& whole, int dimension) {
  const Range part = Axis().PartOf(kVocabulary);
  return whole.narrow(dimension, part.begin, part.size());
}
at::Tensor Leaf(const at::Tensor& x) { return x.detach().clone().requires_grad_(true); }

double Largest(const at::Tensor& x) { return x.abs().max().item<double>(); }

TEST(Embedding, IsTheWholeTable) {
  const at::Tensor whole = Leaf(Random({kVocabulary, kWidth}, 1)), part = Leaf(Part(whole, 0));
  const at::Tensor tokens = at::tensor({0, 10, 5, 5, 2, 7}, at::kLong).view({2, 3}),
                   g = Random({6, kWidth}, 2);
  const at::Tensor expected = at::embedding(whole, tokens.view({-1}));
  const at::Tensor mine = AllReduce(Axis(), Embedding(Axis(), part, kVocabulary, tokens)).local();
  EXPECT_TRUE(mine.equal(expected)) << "one rank adds a row, the others zeros";
  expected.backward(g);
  mine.backward(g);
  EXPECT_LE(Largest(part.grad() - Part(whole.grad(), 0)), 1e-15);
}

TEST(Embedding, RefusesTokensOutsideTheVocabulary) {
  const at::Tensor part = Part(Random({kVocabulary, kWidth}, 1), 0);
  EXPECT_THROW(Embedding(Axis(), part, kVocabulary, at::tensor({0, 11}, at::kLong)), c10::Error);
  EXPECT_THROW(Embedding(Axis(), part, kVocabulary, at::tensor({0, -1}, at::kLong)), c10::Error);
}

void ExpectCrossEntropy(const at::Tensor& logits, const at::Tensor& targets, double tolerance) {
  const at::Tensor whole = Leaf(logits), part = Leaf(Part(logits, 1));
  const at::Tensor expected = at::cross_entropy_loss(whole, targets, {}, at::Reduction::Sum, -100);
  const models::LossSum mine = CrossEntropySum(Axis(), Shard<1>(part), kVocabulary, targets);
  EXPECT_EQ(mine.count, targets.ge(0).sum().item<std::int64_t>());
  EXPECT_LE(Largest(mine.sum - expected), tolerance * (1 + Largest(expected)));
  (expected * 0.3).backward();
  (mine.sum * 0.3).backward();
  EXPECT_LE(Largest(part.grad() - Part(whole.grad(), 1)), tolerance);
}

TEST(CrossEntropySum, IsThatOfGatheredLogits) {
  const at::Tensor targets = at::tensor({0, 10, 5, 3, 7}, at::kLong);
  // 11 exponentials and their logarithm.
  ExpectCrossEntropy(Random({5, kVocabulary}, 1), targets, 1e-14);
  // Without the largest logit of all ranks the exponentials overflow.
  ExpectCrossEntropy(Random({5, kVocabulary}, 2) * 500, targets, 1e-12);
}

TEST(CrossEntropySum, IgnoresNegativeTargets) {
  const at::Tensor targets = at::tensor({-100, 10, -100, 3, 7}, at::kLong);
  ExpectCrossEntropy(Random({5, kVocabulary}, 1), targets, 1e-14);
}

// Each rank looks up its first logit for rows whose target is elsewhere.
TEST(CrossEntropySum, TokensOfProbabilityZero) {
  at::Tensor logits = Random({5, kVocabulary}, 1);
  for (int rank = 0; rank < World().size(); ++rank) {
    const std::int64_t first = PartOf(kVocabulary, rank, World().size()).begin;
    logits.select(1, first).fill_(-std::numeric_limits<double>::infinity());
  }
  ExpectCrossEntropy(logits, at::tensor({10, 10, 10, 10, 10}, at::kLong), 1e-14);
}

TEST(CrossEntropySum, ItsGradientIsNotDifferentiatedAgain) {
  if (World().size() == 1) return;
  const at::Tensor part = Leaf(Part(Random({5, kVocabulary}, 1), 1));
  const models::LossSum loss =
      CrossEntropySum(Axis(), Shard<1>(part), kVocabulary, at::tensor({0, 10, 5, 3, 7}, at::kLong));
  EXPECT_THROW(torch::autograd::grad({loss.sum}, {part}, {}, {}, /*create_graph=*/true), c10::Error);
}

TEST(CrossEntropySum, InBfloat16IsSummedInFloat32) {
  const at::Tensor logits = Random({5, kVocabulary}, 1).to(at::kBFloat16);
  const at::Tensor targets = at::tensor({0, 10, 5, 3, 7}, at::kLong);
  const at::Tensor expected = at::cross_entropy_loss(logits.to(at::kDouble), targets, {}, at::Reduction::Sum);
  const models::LossSum mine = CrossEntropySum(Axis(), Shard<1>(Part(logits, 1)), kVocabulary, targets);
  ASSERT_EQ(mine.sum.scalar_type(), at::kFloat);
  // 5 rows of 11 exponentials in float32.
  EXPECT_LE(Largest(mine.sum - expected), 5 * 14 * 6e-8 * 10);
}

}  // namespace
}  // namespace plait::tensor_parallel
