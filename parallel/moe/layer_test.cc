// Experts on several ranks against the sum over experts written out on one, in float64, and bit for bit on integers.
#include "parallel/moe/layer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/tensor_collectives.h"
#include "comm/testing/world.h"
#include "parallel/moe/layer_chunk.h"

namespace plait::moe {
namespace {

using comm::testing::World;

constexpr std::int64_t kWidth = 6, kHidden = 10;

struct Case {
  int experts = 8, k = 2, chunks = 1;
  std::int64_t tokens = 37;  // of all ranks
  std::string placement = "home";  // "home", "random", "everywhere"
  std::string routing = "random";  // "random", "one" expert, "few": the first half of experts; "first rank": has all tokens
  bool biases = true;
  bool exact = false;  // integers
  bool two_level = false;
};

std::string TextOf(const Case& c) {
  return absl::StrCat(c.experts, " experts, k=", c.k, ", ", c.chunks, " chunks, ", c.tokens, " tokens, ",
                      c.placement, ", ", c.routing, c.exact ? ", exact" : "", c.two_level ? ", two levels" : "");
}

// Values of the whole problem, the same on every rank.
class Problem {
 public:
  explicit Problem(const Case& c) : c_(c), generator_(at::make_generator<at::CPUGeneratorImpl>(7)) {
    x = Values({c.tokens, kWidth});
    weights = Weights();
    experts = Experts();
    gradient = Values({c.tokens, kWidth});
    parameters.in = Values({c.experts, kHidden, kWidth});
    parameters.out = Values({c.experts, kWidth, kHidden});
    if (c.biases) parameters.in_bias = Values({c.experts, kHidden});
    if (c.biases) parameters.out_bias = Values({c.experts, kWidth});
  }
  at::Tensor x, weights, experts, gradient;
  ExpertWeights parameters;

 private:
  // Integers whose sums of products stay far below 2^53.
  at::Tensor Values(at::IntArrayRef shape) {
    if (c_.exact) return at::randint(-3, 4, shape, generator_, at::kDouble);
    return at::empty(shape, at::kDouble).normal_(0, 1, generator_);
  }
  at::Tensor Weights() {
    if (c_.exact) return at::empty({c_.tokens, c_.k}, at::kDouble).fill_(0.5);
    return at::empty({c_.tokens, c_.k}, at::kDouble).uniform_(0, 1, generator_);
  }
  // k distinct experts of each token; one token has none.
  at::Tensor Experts() {
    at::Tensor chosen = at::empty({c_.tokens, c_.k}, at::kLong);
    const int most = c_.routing == "few" ? std::max(c_.k, c_.experts / 2) : c_.experts;
    for (std::int64_t t = 0; t < c_.tokens; ++t) {
      const auto first = c_.routing == "one" ? 0 : at::randint(0, most, {1}, generator_, at::kLong).item<std::int64_t>();
      for (int j = 0; j < c_.k; ++j) chosen[t][j] = (first + j) % most;
    }
    if (c_.tokens > 3) chosen[3].fill_(-1);
    return chosen;
  }
  const Case c_;
  at::Generator generator_;
};

at::Tensor Leaf(const at::Tensor& x) {
  return x.defined() ? x.detach().clone().requires_grad_(true) : at::Tensor();
}

struct Result {
  at::Tensor y, x, weights, in, in_bias, out, out_bias;  // gradients but y
};

// Every expert on every token, weighted: no selection, no permutation.
Result Dense(const Case& c, const Problem& p) {
  const at::Tensor x = Leaf(p.x), weights = Leaf(p.weights), in = Leaf(p.parameters.in), out = Leaf(p.parameters.out),
                   in_bias = Leaf(p.parameters.in_bias), out_bias = Leaf(p.parameters.out_bias);
  at::Tensor y = at::zeros({c.tokens, kWidth}, at::kDouble);
  for (int e = 0; e < c.experts; ++e) {
    at::Tensor wide = at::matmul(x, in[e].t());
    if (c.biases) wide = wide + in_bias[e];
    at::Tensor value = at::matmul(c.exact ? at::relu(wide) : at::gelu(wide), out[e].t());
    if (c.biases) value = value + out_bias[e];
    y = y + (weights * p.experts.eq(e)).sum(1, true) * value;
  }
  y.backward(p.gradient);
  const auto gradient = [](const at::Tensor& t) { return t.defined() ? t.grad() : at::Tensor(); };
  return {y.detach(),   x.grad(),          weights.grad(), in.grad(), gradient(in_bias),
          out.grad(), gradient(out_bias)};
}

std::vector<std::int64_t> TokensOfRanks(const Case& c) {
  const int n = World().size();
  std::vector<std::int64_t> begin = {0};
  for (int r = 1; r <= n; ++r) begin.push_back(c.routing == "first rank" ? c.tokens : c.tokens * r / n);
  return begin;
}

ExpertPlacement PlacementOf(const Case& c, const Problem& p, const std::vector<std::int64_t>& begin) {
  const int n = World().size();
  ExpertPlacement placement(n, c.experts);
  if (c.placement == "home") return placement;
  unsigned state = 5;
  const auto next = [&state](int below) { return static_cast<int>((state = state * 1664525 + 1013904223) >> 16) % below; };
  for (int e = 0; e < c.experts; ++e) {
    for (int r = 0; r < n; ++r) {
      if (r != placement.home_rank(e) && (c.placement == "everywhere" || next(3) == 0)) placement.AddReplica(e, r);
    }
  }
  for (int source = 0; source < n; ++source) {
    for (int e = 0; e < c.experts; ++e) {
      auto rows = p.experts.slice(0, begin[source], begin[source + 1]).eq(e).sum().item<std::int64_t>();
      std::vector<RowShare> shares;
      while (rows > 0) {
        const int rank = next(n), slot = placement.SlotOf(e, rank);
        if (slot < 0) continue;
        const std::int64_t some = 1 + next(static_cast<int>(rows));
        shares.push_back({rank, slot, some});
        rows -= some;
      }
      placement.SetShares(source, e, shares);
    }
  }
  return placement;
}

ExchangeRanks RanksOf(const Case& c) {
  std::vector<int> nodes;
  for (int r = 0; r < World().size(); ++r) nodes.push_back(c.two_level ? (r + 1) / 2 : 0);
  return ExchangeRanks(World(), nodes);
}

// This rank's part of the result.
Result Parallel(const Case& c, const Problem& p) {
  const auto begin = TokensOfRanks(c);
  const int me = World().rank();
  const ExpertPlacement placement = PlacementOf(c, p, begin);
  const auto tokens = [&](const at::Tensor& t) { return t.slice(0, begin[me], begin[me + 1]); };
  const auto home = [&](const at::Tensor& t) {
    if (!t.defined()) return at::Tensor();
    return Leaf(t.narrow(0, placement.first_home_expert(me), placement.home_experts(me)));
  };
  const at::Tensor x = Leaf(tokens(p.x)), weights = Leaf(tokens(p.weights));
  ExpertWeights parameters;
  parameters.in = home(p.parameters.in);
  parameters.in_bias = home(p.parameters.in_bias);
  parameters.out = home(p.parameters.out);
  parameters.out_bias = home(p.parameters.out_bias);
  const ExpertLayer layer(RanksOf(c), {.experts = c.experts,
                                       .mlp = {.activation = c.exact ? Activation::kRelu : Activation::kGelu},
                                       .chunks = c.chunks});
  const at::Tensor y = layer.Forward(x, tokens(p.experts), weights, parameters, placement);
  y.backward(tokens(p.gradient));
  const auto gradient = [](const at::Tensor& t) { return t.defined() ? t.grad() : at::Tensor(); };
  return {y.detach(),           x.grad(), weights.grad(), parameters.in.grad(), gradient(parameters.in_bias),
          parameters.out.grad(), gradient(parameters.out_bias)};
}

void ExpectDense(const Case& c) {
  SCOPED_TRACE(TextOf(c));
  const Problem problem(c);
  const Result dense = Dense(c, problem), mine = Parallel(c, problem);
  const auto begin = TokensOfRanks(c);
  const int me = World().rank();
  const ExpertPlacement placement(World().size(), c.experts);
  // Sums of at most tokens * (kWidth + kHidden) products; values up to some tens.
  const double tolerance = c.exact ? 0 : 1e-12;
  const auto compare = [&](const char* what, const at::Tensor& expected, const at::Tensor& actual) {
    ASSERT_EQ(expected.defined(), actual.defined()) << what;
    if (!expected.defined() || expected.numel() == 0) return;
    ASSERT_EQ(expected.sizes(), actual.sizes()) << what;
    const double scale = c.exact ? 1 : std::max(1.0, expected.abs().max().item<double>());
    const at::Tensor difference = (expected - actual).abs().max();
    EXPECT_LE(difference.item<double>(), tolerance * scale) << what;
  };
  const auto tokens = [&](const at::Tensor& t) { return t.slice(0, begin[me], begin[me + 1]); };
  const auto home = [&](const at::Tensor& t) {
    return t.defined() ? t.narrow(0, placement.first_home_expert(me), placement.home_experts(me)) : t;
  };
  compare("output", tokens(dense.y), mine.y);
  compare("gradient of x", tokens(dense.x), mine.x);
  compare("gradient of the weights", tokens(dense.weights), mine.weights);
  compare("gradient of in", home(dense.in), mine.in);
  compare("gradient of in_bias", home(dense.in_bias), mine.in_bias);
  compare("gradient of out", home(dense.out), mine.out);
  compare("gradient of out_bias", home(dense.out_bias), mine.out_bias);
}

TEST(ExpertLayer, IsTheSumOverExperts) {
  for (const bool exact : {false, true}) {
    for (const int experts : {4, 8, 7, 32}) {
      for (const int k : {1, 2, 4}) {
        for (const char* placement : {"home", "random", "everywhere"}) {
          for (const int chunks : {1, 3}) {
            ExpectDense({.experts = experts, .k = k, .chunks = chunks, .placement = placement, .exact = exact});
          }
        }
      }
    }
  }
}

TEST(ExpertLayer, RowsThroughRelaysAreTheSame) {
  for (const bool exact : {false, true}) {
    for (const char* placement : {"home", "random"}) {
      ExpectDense({.experts = 8, .k = 4, .chunks = 2, .placement = placement, .exact = exact, .two_level = true});
    }
  }
}

TEST(ExpertLayer, Edges) {
  for (const char* routing : {"one", "few", "first rank"}) {
    for (const char* placement : {"home", "random"}) {
      ExpectDense({.k = 2, .placement = placement, .routing = routing});
      ExpectDense({.k = 2, .chunks = 2, .placement = placement, .routing = routing, .exact = true});
    }
  }
  ExpectDense({.experts = 4, .k = 4});                       // every expert
  ExpectDense({.experts = 1, .k = 1});                       // ranks without an expert
  ExpectDense({.experts = 3, .k = 2, .tokens = 1});          // ranks without a token
  ExpectDense({.experts = 8, .k = 1, .chunks = 5, .tokens = 4});  // chunks without a token
  ExpectDense({.experts = 8, .k = 2, .biases = false});
}

}  // namespace
}  // namespace plait::moe
