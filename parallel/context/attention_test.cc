// Attention over split sequences against a float64 reference over whole sequences.
#include "parallel/context/attention.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "comm/tensor_collectives.h"
#include "comm/testing/world.h"

namespace plait::context_parallel {
namespace {

using comm::testing::World;

constexpr std::int64_t kBatch = 2, kWidth = 4;

at::Tensor Random(at::IntArrayRef shape, std::uint64_t seed) {
  const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::empty(shape, at::kDouble).normal_(0, 1, generator);
}

struct Tensors {
  at::Tensor query, key, value;
};

constexpr std::uint64_t kMaskSeed = 6;
constexpr std::int64_t kFirstSample = 3;

// The reference for `length` tokens, with the dropout mask of the whole tensor of probabilities.
at::Tensor Reference(const Tensors& in, bool causal, double dropped = 0) {
  const std::int64_t group = in.query.size(1) / in.key.size(1), length = in.query.size(2);
  const at::Tensor keys = in.key.repeat_interleave(group, 1), values = in.value.repeat_interleave(group, 1);
  at::Tensor scores = at::matmul(in.query, keys.transpose(2, 3)) / std::sqrt(static_cast<double>(kWidth));
  if (causal) {
    const at::Tensor positions = at::arange(length);
    scores = scores.masked_fill(positions.unsqueeze(0).gt(positions.unsqueeze(1)),
                                -std::numeric_limits<double>::infinity());
  }
  const at::Tensor rows = at::arange(in.query.numel() / kWidth, at::kLong);
  const at::Tensor first = rows + kFirstSample * in.query.size(1) * length;
  const at::Tensor kept =
      dropout::Dropout(at::ones({rows.numel(), length}, at::kDouble), {dropped, kMaskSeed}, {first, length});
  return at::matmul(at::softmax(scores, -1) * kept.view(scores.sizes()), values);
}

struct Setting {
  ContextKind kind;
  bool causal;
  std::int64_t heads, kv_heads, length;
  double dropped = 0;
};

std::string TextOf(const Setting& s) {
  return absl::StrCat(s.kind == ContextKind::kRing ? "ring" : "ulysses", s.causal ? " causal " : " full ",
                      s.heads, "/", s.kv_heads, " heads, ", s.length, " tokens, ", s.dropped, " dropped");
}

at::Tensor Leaf(const at::Tensor& x) { return x.detach().clone().requires_grad_(true); }

double Largest(const at::Tensor& x) { return x.numel() == 0 ? 0 : x.abs().max().item<double>(); }

void ExpectWholeAttention(const Setting& s) {
  SCOPED_TRACE(TextOf(s));
  const ContextAxis axis(World(), s.kind);
  const std::int64_t padded = axis.PaddedLength(s.length);
  // Padding is not zero, to detect if anything attends to it.
  const Tensors all = {Random({kBatch, s.heads, padded, kWidth}, 1),
                       Random({kBatch, s.kv_heads, padded, kWidth}, 2),
                       Random({kBatch, s.kv_heads, padded, kWidth}, 3)};
  const at::Tensor gradient = Random(all.query.sizes(), 4);
  const auto real = [&](const at::Tensor& x) { return x.narrow(2, 0, s.length); };
  const Tensors whole = {Leaf(real(all.query)), Leaf(real(all.key)), Leaf(real(all.value))};
  const at::Tensor expected = Reference(whole, s.causal, s.dropped);
  expected.backward(real(gradient));

  const at::Tensor positions = axis.Positions(padded), mine = positions.lt(s.length).nonzero().squeeze(1);
  const auto part = [&](const at::Tensor& x) { return x.index_select(2, positions); };
  const Tensors local = {Leaf(part(all.query)), Leaf(part(all.key)), Leaf(part(all.value))};
  AttentionOptions options = {.causal = s.causal, .length = s.length};
  if (s.dropped > 0) {
    options.dropout = {.mask = {s.dropped, kMaskSeed}, .first_sample = kFirstSample, .whole_heads = s.heads};
  }
  const at::Tensor out = Attention(axis, local.query, local.key, local.value, options);
  // Results at padded positions are ignored by the caller.
  const at::Tensor weights = part(gradient) * positions.lt(s.length).view({1, 1, -1, 1});
  out.backward(weights);
  const at::Tensor kept = positions.index_select(0, mine);
  const auto difference = [&](const at::Tensor& split, const at::Tensor& w) {
    return Largest(split.index_select(2, mine) - w.index_select(2, kept));
  };
  // Sums of at most `length` products of magnitude 1, in parts.
  const double tolerance = 1e-14 * static_cast<double>(s.length);
  EXPECT_LE(difference(out.detach(), expected.detach()), tolerance);
  EXPECT_LE(difference(local.query.grad(), whole.query.grad()), tolerance) << "gradient of the queries";
  EXPECT_LE(difference(local.key.grad(), whole.key.grad()), tolerance) << "gradient of the keys";
  EXPECT_LE(difference(local.value.grad(), whole.value.grad()), tolerance) << "gradient of the values";
}

TEST(Attention, IsThatOfWholeSequences) {
  const std::int64_t n = World().size();
  for (const ContextKind kind : {ContextKind::kRing, ContextKind::kUlysses}) {
    for (const bool causal : {true, false}) {
      ExpectWholeAttention({kind, causal, 2 * n, 2 * n, 4 * n});
      ExpectWholeAttention({kind, causal, 2 * n, 1, 6 * n});      // shared keys
      ExpectWholeAttention({kind, causal, n, n, 4 * n + 1});      // padded: the last chunks have little
      ExpectWholeAttention({kind, causal, 2 * n, n, 2 * n - 1});  // chunks of one token
      ExpectWholeAttention({kind, causal, 2 * n, n, 4 * n + 1, 0.3});
    }
  }
}

// With large scores, parts whose maxima differ by hundreds are merged without overflow.
TEST(Attention, MergesPartsOfAnyMagnitude) {
  const ContextAxis axis(World(), ContextKind::kRing);
  const std::int64_t length = 4 * World().size();
  const Tensors all = {Random({1, 1, length, kWidth}, 1) * 60, Random({1, 1, length, kWidth}, 2) * 60,
                       Random({1, 1, length, kWidth}, 3)};
  const at::Tensor positions = axis.Positions(length);
  const auto part = [&](const at::Tensor& x) { return x.index_select(2, positions); };
  const at::Tensor out = Attention(axis, part(all.query), part(all.key), part(all.value));
  // Scores of some thousands have errors of some 1e-12.
  EXPECT_LE(Largest(out - part(Reference(all, true))), 1e-10);
}

// With dropout parts are matrix products, which autograd would record without the sums over all keys.
TEST(Attention, ItsGradientIsNotDifferentiatedAgain) {
  for (const ContextKind kind : {ContextKind::kRing, ContextKind::kUlysses}) {
    const ContextAxis axis(World(), kind);
    const std::int64_t n = World().size();
    const at::Tensor query = Leaf(Random({kBatch, n, 2, kWidth}, 1)), key = Leaf(query);
    for (const double dropped : {0.0, 0.3}) {
      if (n == 1 && dropped == 0) continue;  // LibTorch's
      AttentionOptions options;
      if (dropped > 0) options.dropout = {.mask = {dropped, kMaskSeed}, .whole_heads = n};
      const at::Tensor out = Attention(axis, query, key, key, options);
      EXPECT_THROW(torch::autograd::grad({out.sum()}, {query}, {}, {}, /*create_graph=*/true), c10::Error)
          << dropped;
    }
  }
}

TEST(ContextAxis, EveryTokenIsOnOneRank) {
  for (const ContextKind kind : {ContextKind::kRing, ContextKind::kUlysses}) {
    const ContextAxis axis(World(), kind);
    const std::int64_t padded = axis.PaddedLength(7);
    EXPECT_GE(padded, 7);
    at::Tensor count = at::zeros({padded}, at::kLong);
    count.index_add_(0, axis.Positions(padded), at::ones({padded / axis.size()}, at::kLong));
    comm::AllReduce(World(), count);
    EXPECT_TRUE(count.eq(1).all().item<bool>());
  }
}

// Under a causal mask every rank has the same number of pairs of query and key.
TEST(ContextAxis, ZigZagSharesTheWork) {
  const ContextAxis axis(World(), ContextKind::kRing);
  const std::int64_t padded = axis.PaddedLength(8 * World().size());
  const std::int64_t pairs = (axis.Positions(padded) + 1).sum().item<std::int64_t>();
  EXPECT_EQ(pairs, padded * (padded + 1) / 2 / World().size());
}

}  // namespace
}  // namespace plait::context_parallel
