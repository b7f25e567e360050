// Experts on several ranks against the sum over experts written out on one, in float64, and bit for bit on integers.
#include "parallel/moe/layer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/flight_recorder.h"
#include "comm/tensor_collectives.h"
#include "comm/testing/world.h"
#include "parallel/moe/layer_chunk.h"

namespace plait::moe {
namespace {

using comm::testing::World;

constexpr std::int64_t kWidth = 6, kHidden = 10;

struct Case {
  int experts = 8, k = 2, chunks = 1;
  std::int64_t tokens = 37;        // of all ranks
  std::string placement = "home";  // "home", "random", "everywhere"
  std::string routing =
      "random";  // "random", "one" expert, "few": the first half of experts; "first rank": has all tokens
  bool biases = true;
  bool exact = false;  // integers
  bool two_level = false;
  int replicated = 1 << 20;  // experts from here on have no replicas
  std::uint64_t seed = 7;
};

std::string TextOf(const Case& c) {
  return absl::StrCat(c.experts, " experts, k=", c.k, ", ", c.chunks, " chunks, ", c.tokens, " tokens, ",
                      c.placement, ", ", c.routing, c.exact ? ", exact" : "",
                      c.two_level ? ", two levels" : "");
}

// Values of the whole problem, the same on every rank.
class Problem {
 public:
  explicit Problem(const Case& c) : c_(c), generator_(at::make_generator<at::CPUGeneratorImpl>(c.seed)) {
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
      const auto first =
          c_.routing == "one" ? 0 : at::randint(0, most, {1}, generator_, at::kLong).item<std::int64_t>();
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
  const at::Tensor x = Leaf(p.x), weights = Leaf(p.weights), in = Leaf(p.parameters.in),
                   out = Leaf(p.parameters.out), in_bias = Leaf(p.parameters.in_bias),
                   out_bias = Leaf(p.parameters.out_bias);
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
  return {y.detach(), x.grad(), weights.grad(), in.grad(), gradient(in_bias), out.grad(), gradient(out_bias)};
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
  const auto next = [&state](int below) {
    return static_cast<int>((state = state * 1664525 + 1013904223) >> 16) % below;
  };
  for (int e = 0; e < c.experts; ++e) {
    for (int r = 0; r < n; ++r) {
      if (e < c.replicated && r != placement.home_rank(e) && (c.placement == "everywhere" || next(3) == 0))
        placement.AddReplica(e, r);
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

ExpertLayer LayerOf(const Case& c) {
  return {RanksOf(c),
          {.experts = c.experts,
           .mlp = {.activation = c.exact ? Activation::kRelu : Activation::kGelu},
           .chunks = c.chunks}};
}

// This rank's, as leaves.
ExpertWeights HomeOf(const Case& c, const ExpertWeights& all) {
  const ExpertPlacement homes(World().size(), c.experts);
  const int me = World().rank();
  const auto home = [&](const at::Tensor& t) {
    if (!t.defined()) return at::Tensor();
    return Leaf(t.narrow(0, homes.first_home_expert(me), homes.home_experts(me)));
  };
  return {
      .in = home(all.in), .in_bias = home(all.in_bias), .out = home(all.out), .out_bias = home(all.out_bias)};
}

// A forward pass of this rank's tokens; the tensors are leaves.
struct LayerPass {
  LayerPass(const Case& c, const Problem& p) : LayerPass(c, p, LayerOf(c), HomeOf(c, p.parameters)) {}
  LayerPass(const Case& c, const Problem& p, const ExpertLayer& layer, const ExpertWeights& home)
      : parameters(home) {
    const auto begin = TokensOfRanks(c);
    const int me = World().rank();
    const auto tokens = [&](const at::Tensor& t) { return t.slice(0, begin[me], begin[me + 1]); };
    x = Leaf(tokens(p.x));
    weights = Leaf(tokens(p.weights));
    gradient = tokens(p.gradient);
    y = layer.Forward(x, tokens(p.experts), weights, parameters, PlacementOf(c, p, begin));
  }
  std::vector<at::Tensor> of_experts() const {
    std::vector<at::Tensor> all;
    for (const at::Tensor& t : {parameters.in, parameters.in_bias, parameters.out, parameters.out_bias}) {
      if (t.defined()) all.push_back(t);
    }
    return all;
  }
  at::Tensor x, weights, gradient, y;
  ExpertWeights parameters;
};

// This rank's part of the result.
Result Parallel(const Case& c, const Problem& p) {
  const LayerPass run(c, p);
  run.y.backward(run.gradient);
  const auto gradient = [](const at::Tensor& t) { return t.defined() ? t.grad() : at::Tensor(); };
  const ExpertWeights& of = run.parameters;
  return {run.y.detach(),       run.x.grad(),  run.weights.grad(),   of.in.grad(),
          gradient(of.in_bias), of.out.grad(), gradient(of.out_bias)};
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
            ExpectDense(
                {.experts = experts, .k = k, .chunks = chunks, .placement = placement, .exact = exact});
          }
        }
      }
    }
  }
}

TEST(ExpertLayer, SixtyFourExperts) {
  for (const bool exact : {false, true}) {
    for (const int k : {1, 2, 4}) {
      for (const char* placement : {"home", "random", "everywhere"}) {
        ExpectDense(
            {.experts = 64, .k = k, .chunks = k, .tokens = 75, .placement = placement, .exact = exact});
      }
    }
  }
}

TEST(ExpertLayer, RowsThroughRelaysAreTheSame) {
  for (const bool exact : {false, true}) {
    for (const char* placement : {"home", "random"}) {
      ExpectDense(
          {.experts = 8, .k = 4, .chunks = 2, .placement = placement, .exact = exact, .two_level = true});
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
  ExpectDense({.experts = 4, .k = 4});                            // every expert
  ExpectDense({.experts = 1, .k = 1});                            // ranks without an expert
  ExpectDense({.experts = 3, .k = 2, .tokens = 1});               // ranks without a token
  ExpectDense({.experts = 8, .k = 1, .chunks = 5, .tokens = 4});  // chunks without a token
  ExpectDense({.experts = 8, .k = 2, .biases = false});
}

std::vector<at::Tensor> Gradients(const LayerPass& run, const std::vector<at::Tensor>& of,
                                  double factor = 1) {
  return torch::autograd::grad({run.y}, of, {run.gradient * factor}, /*retain_graph=*/true);
}

void ExpectSame(const std::vector<at::Tensor>& expected, const std::vector<at::Tensor>& actual,
                const char* what) {
  ASSERT_EQ(expected.size(), actual.size()) << what;
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(expected[i].equal(actual[i])) << what << " " << i;
}

// Independent of what was computed from the graph before, and with which gradient.
TEST(ExpertLayer, BackwardOfOneGraphAgainAndInParts) {
  for (const char* placement : {"home", "random"}) {
    for (const bool two_level : {false, true}) {
      const Case c = {.k = 4, .chunks = 2, .placement = placement, .exact = true, .two_level = two_level};
      SCOPED_TRACE(TextOf(c));
      const LayerPass run(c, Problem(c));
      const std::vector<at::Tensor> inputs = {run.x, run.weights}, experts = run.of_experts();
      std::vector<at::Tensor> all = inputs;
      all.insert(all.end(), experts.begin(), experts.end());
      const std::vector<at::Tensor> whole = Gradients(run, all);
      std::vector<at::Tensor> of_inputs(whole.begin(), whole.begin() + 2),
          of_experts(whole.begin() + 2, whole.end());
      std::vector<at::Tensor> twice;
      for (const at::Tensor& gradient : of_experts) twice.push_back(2 * gradient);
      ExpectSame(whole, Gradients(run, all), "again");
      EXPECT_THROW(torch::autograd::grad({run.y}, all, {run.gradient}, true, true), c10::Error);
      ExpectSame(of_inputs, Gradients(run, inputs), "inputs");
      ExpectSame(of_experts, Gradients(run, experts), "experts behind inputs");
      ExpectSame(of_inputs, Gradients(run, inputs), "inputs again");
      ExpectSame(twice, Gradients(run, experts, 2), "experts by another gradient");
      ExpectSame(of_experts, Gradients(run, experts), "experts again");
      ExpectSame({whole[0]}, Gradients(run, {run.x}), "x alone");
      ExpectSame(whole, Gradients(run, all), "all behind inputs");
    }
  }
}

// Of float64, whose products are LibTorch's: how many the gradients of `of` take.
int ProductsOf(const LayerPass& run, const std::vector<at::Tensor>& of) {
  static thread_local int products = 0;  // callbacks have no state
  products = 0;
  const at::CallbackHandle handle = at::addThreadLocalCallback(at::RecordFunctionCallback(
      [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
        products += std::string(function.name()) == "aten::mm" ? 1 : 0;
        return nullptr;
      }));
  torch::autograd::grad({run.y}, of, {run.gradient}, /*retain_graph=*/true);
  at::removeCallback(handle);
  return products;
}

// A group with rows takes one product to hidden rows and one to inputs, every expert two for its weights.
TEST(ExpertLayer, BackwardInTwoPartsMultipliesNothingTwice) {
  const Case c = {.k = 4, .chunks = 2, .placement = "random"};
  const LayerPass run(c, Problem(c));
  std::vector<at::Tensor> all = run.of_experts();
  all.insert(all.end(), {run.x, run.weights});
  const int whole = ProductsOf(run, all), first = ProductsOf(run, {run.x, run.weights});
  EXPECT_GT(first, 0);
  EXPECT_EQ(first + ProductsOf(run, run.of_experts()), whole);
  EXPECT_EQ(ProductsOf(run, run.of_experts()), whole - first / 2) << "nothing is kept any more";
}

// SGD of a linear loss of two micro-batches. A step adds 8 bits behind the point: integers of 13 bits and five steps fit into
// float64's 53, so that no sum is rounded, whatever its order.
constexpr int kExactSteps = 5, kMicroBatches = 2;
constexpr double kExactRate = 1.0 / 128;

void Step(const std::vector<at::Tensor>& parameters) {
  const at::NoGradGuard not_recorded;
  for (const at::Tensor& p : parameters) {
    p.sub_(kExactRate * p.grad());
    const at::Tensor scaled = p * std::ldexp(1, 40);
    ASSERT_TRUE(scaled.equal(scaled.round()) && scaled.abs().lt(std::ldexp(1, 53)).all().item<bool>())
        << "not exact";
  }
}

Problem ProblemOf(Case c, int step, int micro_batch) {
  c.seed = 50 + kMicroBatches * step + micro_batch;
  return Problem(c);
}

// Of all experts, on one rank without selection or permutation.
ExpertWeights TrainedDensely(const Case& c) {
  ExpertWeights trained = ProblemOf(c, 0, 0).parameters;
  for (int step = 0; step < kExactSteps; ++step) {
    Result sum;
    for (int k = 0; k < kMicroBatches; ++k) {
      Problem p = ProblemOf(c, step, k);
      p.parameters = trained;
      const Result one = Dense(c, p);
      for (const auto member : {&Result::in, &Result::in_bias, &Result::out, &Result::out_bias})
        sum.*member = k == 0 ? one.*member : sum.*member + one.*member;
    }
    const auto stepped = [](const at::Tensor& value, const at::Tensor& gradient) {
      const at::Tensor leaf = Leaf(value);
      leaf.mutable_grad() = gradient;
      Step({leaf});
      return leaf.detach();
    };
    trained.in = stepped(trained.in, sum.in);
    trained.in_bias = stepped(trained.in_bias, sum.in_bias);
    trained.out = stepped(trained.out, sum.out);
    trained.out_bias = stepped(trained.out_bias, sum.out_bias);
  }
  return trained;
}

// The second micro-batch has more replicas than the first one.
ExpertWeights Trained(Case c) {
  ExpertLayer layer = LayerOf(c);
  const ExpertWeights home = HomeOf(c, ProblemOf(c, 0, 0).parameters);
  const std::vector<at::Tensor> parameters = {home.in, home.in_bias, home.out, home.out_bias};
  for (int step = 0; step < kExactSteps; ++step) {
    for (const at::Tensor& p : parameters) p.mutable_grad() = at::Tensor();
    for (int k = 0; k < kMicroBatches; ++k) {
      c.replicated = k == 0 ? c.experts / 2 : c.experts;
      // Other ranks' experts must not be read.
      const LayerPass run(c, ProblemOf(c, step, k), layer, home);
      run.y.backward(run.gradient);
    }
    Step(parameters);
    layer.EndStep();
  }
  return home;
}

TEST(ExpertLayer, TrainingHasTheSameBitsOnEveryWorldPlacementAndChunking) {
  for (const int experts : {5, 8}) {
    const Case first = {.experts = experts, .exact = true};
    const ExpertWeights all = TrainedDensely(first);
    EXPECT_FALSE(all.in.equal(ProblemOf(first, 0, 0).parameters.in));
    const ExpertWeights expected = HomeOf(first, all);
    for (const char* placement : {"home", "random", "everywhere"}) {
      for (const int chunks : {1, 3}) {
        for (const bool two_level : {false, true}) {
          Case c = first;
          c.placement = placement;
          c.chunks = chunks;
          c.two_level = two_level;
          SCOPED_TRACE(TextOf(c));
          const ExpertWeights trained = Trained(c);
          EXPECT_TRUE(trained.in.equal(expected.in));
          EXPECT_TRUE(trained.in_bias.equal(expected.in_bias));
          EXPECT_TRUE(trained.out.equal(expected.out));
          EXPECT_TRUE(trained.out_bias.equal(expected.out_bias));
        }
      }
    }
  }
}

// Messages in flight when a chunk's experts begin to compute: rows of the next chunk, and results of the previous ones.
TEST(ExpertLayer, ChunksTravelWhileAnotherOneIsComputed) {
  if (World().size() == 1) return;
  constexpr int kChunks = 4;
  const Case c = {.chunks = kChunks};
  const Problem p(c);
  std::vector<int> forward, backward;
  PassTrace trace;
  trace.before_experts = [&](bool is_backward, std::size_t chunk) {
    std::vector<int>& seen = is_backward ? backward : forward;
    ASSERT_EQ(seen.size(), chunk);
    const std::vector<comm::CallRecord> calls = World().recorder().Calls();
    seen.push_back(static_cast<int>(std::count_if(calls.begin(), calls.end(), [](const auto& call) {
      return call.state == comm::CallState::kInFlight && call.operation == comm::Operation::kAllToAllV;
    })));
  };
  ExpertLayerOptions options = LayerOf(c).options();
  options.trace = &trace;
  const LayerPass run(c, p, ExpertLayer(RanksOf(c), options), HomeOf(c, p.parameters));
  run.y.backward(run.gradient);
  const std::vector<int> expected = {1 + 0, 1 + 1, 1 + 2, 0 + 3};
  EXPECT_EQ(forward, expected);
  EXPECT_EQ(backward, expected);
}

// Tensors without memory.
TEST(ExpertLayer, MoreRowsThan32BitsCountAreRefused) {
  const Case c;
  const ExpertLayer layer = LayerOf(c);
  const ExpertWeights home = HomeOf(c, Problem(c).parameters);
  const ExpertPlacement placement(World().size(), c.experts);
  const auto meta = [](std::int64_t rows, std::int64_t columns, at::ScalarType type) {
    return at::empty({rows, columns}, at::TensorOptions(type).device(at::kMeta));
  };
  const auto forward = [&](std::int64_t tokens, std::int64_t k, std::int64_t width) {
    layer.Forward(meta(tokens, width, at::kDouble), meta(tokens, k, at::kLong), meta(tokens, k, at::kDouble),
                  home, placement);
  };
  EXPECT_DEATH(forward(std::int64_t{1} << 30, 2, kWidth),
               "1073741824 tokens for 2 experts each, 6 wide: expected at most 2147483647 rows of a rank");
  EXPECT_DEATH(forward(5, 2, std::int64_t{1} << 31),
               "5 tokens for 2 experts each, 2147483648 wide: expected");
}

}  // namespace
}  // namespace plait::moe
