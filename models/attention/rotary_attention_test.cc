// Against attention of rotated heads in float64, values and gradients.
#include "models/attention/rotary_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
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
#include "models/attention/testing/head_bounds.h"

namespace plait::attention {
namespace {

struct Shape {
  std::int64_t batch, heads, key_heads, seq, width;
  bool causal = true;

  AttentionSizes sizes() const {
    return {.batch = batch, .heads = heads, .causal = causal, .key_heads = key_heads};
  }
};

// One pair, groups of one, several and all heads, blocks of 32 queries that are whole and not, heads of a part of a vector,
// of one and of several.
const std::vector<Shape> kShapes = {{1, 1, 1, 1, 2},    {3, 4, 2, 5, 4},   {2, 6, 2, 33, 6},
                                    {2, 16, 4, 64, 16}, {1, 3, 1, 65, 20}, {1, 2, 2, 40, 100},
                                    {1, 2, 1, 256, 8}};

bool HasKernels(at::ScalarType type) {
  return type == at::kFloat ? UsableHeads<float>() != nullptr : UsableHeads<BFloat16>() != nullptr;
}

at::Tensor Numbers(const std::vector<std::int64_t>& sizes, double seed) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  const at::Tensor n = at::arange(count, at::kDouble) + seed;
  return at::sin(n * n * 0.37).view(sizes);
}

// Rows (batch seq, heads width) as (batch, heads, seq, width).
at::Tensor Heads(const at::Tensor& rows, std::int64_t heads, const Shape& s) {
  return rows.to(at::kDouble).view({s.batch, s.seq, heads, s.width}).transpose(1, 2);
}
at::Tensor RowsOf(const at::Tensor& heads) { return heads.transpose(1, 2).flatten(2).flatten(0, 1); }

// A pair as a complex number, times exp(i position / 10000^(2 pair / width)).
struct Angles {
  explicit Angles(const Shape& s) {
    const at::Tensor pairs = at::arange(s.width / 2, at::kDouble) * (-2.0 / static_cast<double>(s.width));
    const at::Tensor angles = at::outer(at::arange(s.seq, at::kDouble), at::pow(10000.0, pairs));
    cosine = angles.cos().to(at::kFloat).to(at::kDouble);
    sine = angles.sin().to(at::kFloat).to(at::kDouble);
  }
  RotaryTables Tables() const {
    const auto table = [](const at::Tensor& even, const at::Tensor& odd) {
      return at::stack({even, odd}, 2).flatten(1).to(at::kFloat);
    };
    return {table(cosine, cosine), table(-sine, sine)};
  }
  at::Tensor Turn(const at::Tensor& heads, double way = 1) const {
    const at::Tensor a = heads.slice(3, 0, INT64_MAX, 2), b = heads.slice(3, 1, INT64_MAX, 2);
    return at::stack({a * cosine - b * sine * way, b * cosine + a * sine * way}, -1).flatten(3);
  }
  // What rounding adds to turned numbers: three roundings of both products, and that of the result.
  at::Tensor Errors(const at::Tensor& heads, const Precision& p) const {
    return SumOfSizes(heads) * (3 * p.sums) + Turn(heads).abs() * p.stored;
  }
  at::Tensor SumOfSizes(const at::Tensor& heads) const {
    const at::Tensor a = heads.abs().slice(3, 0, INT64_MAX, 2), b = heads.abs().slice(3, 1, INT64_MAX, 2);
    return at::stack({a * cosine.abs() + b * sine.abs(), b * cosine.abs() + a * sine.abs()}, -1).flatten(3);
  }

  at::Tensor cosine, sine;  // (seq, width / 2), the numbers of the tables
};

// (batch, heads, ...) -> (batch, key_heads, ...): the sum over each group; and each key head for its group.
at::Tensor OverGroups(const at::Tensor& heads, const Shape& s) {
  return heads.unflatten(1, {s.key_heads, s.heads / s.key_heads}).sum(2);
}
at::Tensor PerQuery(const at::Tensor& keys, const Shape& s) {
  return keys.repeat_interleave(s.heads / s.key_heads, 1);
}

at::Tensor Reference(const std::vector<at::Tensor>& rows, const Shape& s) {
  const Angles angles(s);
  return RowsOf(at::scaled_dot_product_attention(
      angles.Turn(Heads(rows[0], s.heads, s)), PerQuery(angles.Turn(Heads(rows[1], s.key_heads, s)), s),
      PerQuery(Heads(rows[2], s.key_heads, s), s), {}, 0, s.causal));
}

// Of the results, and of the gradients of queries, keys and values, as rows. The gradient of a key is a sum over its group, of
// at most 16 terms; those of queries and keys are turned back, which rounds as turning does. bfloat16 rounds them twice.
std::vector<at::Tensor> BoundsOf(const std::vector<at::Tensor>& rows, const at::Tensor& of_out,
                                 const Shape& s, const Precision& p) {
  const Angles angles(s);
  const at::Tensor q = Heads(rows[0], s.heads, s), k = PerQuery(Heads(rows[1], s.key_heads, s), s);
  const at::Tensor turned_q = angles.Turn(q), turned_k = angles.Turn(k);
  const HeadBounds b =
      BoundsOfHeads({turned_q, turned_k, PerQuery(Heads(rows[2], s.key_heads, s), s)},
                    Heads(of_out, s.heads, s), s.causal, p, {angles.Errors(q, p), angles.Errors(k, p)});
  std::vector<at::Tensor> exact;
  for (const at::Tensor& t : rows) exact.push_back(t.to(at::kDouble).detach().requires_grad_());
  const std::vector<at::Tensor> gradients =
      torch::autograd::grad({Reference(exact, s)}, exact, {of_out.to(at::kDouble)});
  const at::Tensor dq = angles.Turn(Heads(gradients[0], s.heads, s)),
                   dk = angles.Turn(Heads(gradients[1], s.key_heads, s)),
                   dv = Heads(gradients[2], s.key_heads, s);
  const at::Tensor of_key = OverGroups(b.of_key, s) * (1 + 16 * p.sums) + dk.abs() * (16 * p.sums),
                   of_value = OverGroups(b.of_value, s) * (1 + 16 * p.sums) + dv.abs() * (16 * p.sums);
  const auto turned_back = [&](const at::Tensor& errors, const at::Tensor& turned) {
    return angles.SumOfSizes(errors) + angles.SumOfSizes(turned) * (3 * p.sums) +
           angles.Turn(turned, -1).abs() * p.stored;
  };
  return {RowsOf(b.values), RowsOf(turned_back(b.of_query, dq)), RowsOf(turned_back(of_key, dk)),
          RowsOf(of_value)};
}

void ExpectNear(const at::Tensor& a, const at::Tensor& exact, const at::Tensor& bound,
                const std::string& what) {
  EXPECT_LE(((a.detach().to(at::kDouble) - exact.detach()).abs() / bound).max().item<double>(), 1) << what;
}

std::vector<at::Tensor> Inputs(const Shape& s, at::ScalarType type) {
  std::vector<at::Tensor> inputs;
  for (const std::int64_t heads : {s.heads, s.key_heads, s.key_heads}) {
    inputs.push_back(Numbers({s.batch * s.seq, heads * s.width}, static_cast<double>(inputs.size()) + 1)
                         .to(type)
                         .requires_grad_());
  }
  return inputs;
}

void ExpectIsReference(const Shape& s, at::ScalarType type, const Precision& precision) {
  const std::string what = std::to_string(s.heads) + " heads, " + std::to_string(s.key_heads) +
                           " key heads, " + std::to_string(s.seq) + " positions, width " +
                           std::to_string(s.width) + (s.causal ? ", causal" : ", full");
  const RotaryTables tables = Angles(s).Tables();
  const std::vector<at::Tensor> mine = Inputs(s, type);
  ASSERT_TRUE(UsesRotaryAttention(mine[0], s.sizes(), tables));
  const at::Tensor of_out = Numbers({s.batch * s.seq, s.heads * s.width}, 7).to(type);
  const at::Tensor out = RotaryAttention(mine[0], mine[1], mine[2], s.sizes(), tables);
  ASSERT_EQ(out.scalar_type(), type);
  std::vector<at::Tensor> exact;
  for (const at::Tensor& t : mine) exact.push_back(t.detach().to(at::kDouble).requires_grad_());
  const at::Tensor expected = Reference(exact, s);
  const std::vector<at::Tensor> bounds = BoundsOf(mine, of_out, s, precision);
  ExpectNear(out, expected, bounds[0], what + ": values");
  const std::vector<at::Tensor> of_mine = torch::autograd::grad({out}, mine, {of_out});
  const std::vector<at::Tensor> of_exact = torch::autograd::grad({expected}, exact, {of_out.to(at::kDouble)});
  for (std::size_t i = 0; i < 3; ++i) {
    ExpectNear(of_mine[i], of_exact[i], bounds[i + 1], what + ": gradient " + std::to_string(i));
  }
}

TEST(RotaryAttentionTest, ValuesAndGradientsAreThoseOfFloat64) {
  for (Shape shape : kShapes) {
    for (const bool causal : {true, false}) {
      shape.causal = causal;
      if (HasKernels(at::kFloat)) ExpectIsReference(shape, at::kFloat, {0x1p-24, 0x1p-24});
      if (HasKernels(at::kBFloat16)) ExpectIsReference(shape, at::kBFloat16, {0x1p-24, 0x1p-8});
    }
  }
}

// As tensor parallelism makes keys: columns of wider rows.
TEST(RotaryAttentionTest, RowsMayLieApart) {
  if (!HasKernels(at::kFloat)) return;  // not used there
  const Shape s{.batch = 2, .heads = 4, .key_heads = 2, .seq = 9, .width = 6};
  const RotaryTables tables = Angles(s).Tables();
  const std::vector<at::Tensor> dense = Inputs(s, at::kFloat);
  std::vector<at::Tensor> apart;
  for (const at::Tensor& t : dense) {
    apart.push_back(at::empty({t.size(0), t.size(1) + 5}).narrow(1, 3, t.size(1)).copy_(t.detach()));
  }
  EXPECT_TRUE(RotaryAttention(apart[0], apart[1], apart[2], s.sizes(), tables)
                  .equal(RotaryAttention(dense[0], dense[1], dense[2], s.sizes(), tables)));
}

TEST(RotaryAttentionTest, ItsGradientIsNotDifferentiatedAgain) {
  if (!HasKernels(at::kFloat)) return;  // not used there
  const Shape s{.batch = 2, .heads = 4, .key_heads = 2, .seq = 9, .width = 6};
  std::vector<at::Tensor> in = Inputs(s, at::kFloat);
  in[0].requires_grad_(true);
  const at::Tensor out = RotaryAttention(in[0], in[1], in[2], s.sizes(), Angles(s).Tables());
  EXPECT_THROW(torch::autograd::grad({out}, {in[0]}, {out.detach()}, {}, /*create_graph=*/true), c10::Error);
}

TEST(RotaryAttentionTest, IsForShortSequencesOnProcessors) {
  const Shape s{.batch = 2, .heads = 2, .key_heads = 1, .seq = 4, .width = 6};
  const RotaryTables tables = Angles(s).Tables();
  const auto uses = [&](std::int64_t seq, const at::TensorOptions& options) {
    return UsesRotaryAttention(at::empty({2 * seq, 12}, options), s.sizes(), tables);
  };
  EXPECT_EQ(uses(kLongestShortSequence, at::kFloat), HasKernels(at::kFloat));
  EXPECT_FALSE(uses(kLongestShortSequence + 1, at::kFloat));
  EXPECT_FALSE(uses(4, at::kDouble));
  // As a processor would, for dry runs.
  EXPECT_EQ(uses(4, at::TensorOptions(at::kFloat).device(at::kMeta)), HasKernels(at::kFloat));
}

TEST(RotaryAttentionTest, ThreadsAndBatchesDoNotMatter) {
  const Shape s{.batch = 16, .heads = 8, .key_heads = 4, .seq = 64, .width = 32};
  const RotaryTables tables = Angles(s).Tables();
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    if (!HasKernels(type)) continue;  // not used there
    const std::vector<at::Tensor> inputs = Inputs(s, type);
    const auto results = [&](const std::vector<at::Tensor>& in, std::int64_t batch) {
      AttentionSizes sizes = s.sizes();
      sizes.batch = batch;
      const at::Tensor out = RotaryAttention(in[0], in[1], in[2], sizes, tables);
      std::vector<at::Tensor> all = torch::autograd::grad({out}, in, {out.detach()});
      all.push_back(out.detach());
      return all;
    };
    ExpectSameOnThreads(6, [&] { return results(inputs, s.batch); });
    std::vector<at::Tensor> first;
    for (const at::Tensor& t : inputs) first.push_back(t.detach().narrow(0, 0, s.seq).requires_grad_());
    const std::vector<at::Tensor> whole = results(inputs, s.batch), alone = results(first, 1);
    for (std::size_t i = 0; i < whole.size(); ++i)
      EXPECT_TRUE(whole[i].narrow(0, 0, s.seq).equal(alone[i])) << i;
  }
}

TEST(RotaryAttentionDeathTest, ShapesMustFit) {
  const Shape s{.batch = 1, .heads = 2, .key_heads = 1, .seq = 4, .width = 6};
  const RotaryTables tables = Angles(s).Tables();
  const at::Tensor query = at::empty({4, 12}), key = at::empty({4, 6});
  EXPECT_DEATH(RotaryAttention(query, key, at::empty({4, 12}), s.sizes(), tables),
               "for queries of shape \\[4, 12\\]");
  EXPECT_DEATH(RotaryAttention(at::empty({8, 12}), at::empty({8, 6}), at::empty({8, 6}), s.sizes(), tables),
               "rotary table of shape");
}

}  // namespace
}  // namespace plait::attention
