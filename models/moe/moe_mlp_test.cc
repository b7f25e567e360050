// A layer of experts against a dense reference (every expert on every token) in float64 with LibTorch's autograd:
// output, loss, and gradients of the input and of every parameter.
#include "models/moe/moe_mlp.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/special_ndtr.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "base/seed.h"
#include "parallel/dropout/random_numbers.h"

namespace plait::moe {
namespace {

using Parameters = std::map<std::string, at::Tensor>;

constexpr std::int64_t kWidth = 6, kHidden = 10, kSamples = 8, kSequence = 5, kTokens = kSamples * kSequence;
constexpr std::int64_t kLayer = 3, kFirstSample = 2;
constexpr int kExperts = 7;
constexpr std::uint64_t kSeed = 23;
constexpr double kLossFactor = 0.3;

at::Tensor Random(at::IntArrayRef shape, std::uint64_t seed) {
  return at::randn(shape, at::make_generator<at::CPUGeneratorImpl>(seed), at::kDouble);
}

// A layer with parameters that are all different from zero.
struct Layer {
  explicit Layer(const MoeOptions& options)
      : root(std::make_shared<torch::nn::Module>("Root")),
        moe(*root, "mlp", kLayer, kWidth, options, at::kDouble) {
    const at::NoGradGuard not_recorded;
    std::uint64_t seed = 1;
    for (const auto& item : root->named_parameters())
      item.value().copy_(Random(item.value().sizes(), ++seed) / 2);
    for (const auto& item : root->named_buffers())
      item.value().copy_(Random(item.value().sizes(), ++seed) / 4);
  }
  MoeMlp::Output Forward(const at::Tensor& x, bool final = true, std::uint64_t seed = kSeed) {
    const models::BlockContext context = {.final = final,
                                          .random = {.seed = seed, .first_sample = kFirstSample}};
    return moe.Forward(tensor_parallel::Residual(x), {.batch = x.size(0) / kSequence, .context = context});
  }
  // Of the state dict below "mlp.", as leaves of their own.
  Parameters Copies() const {
    Parameters copies;
    for (const auto& item : root->named_parameters()) {
      copies[item.key().substr(4)] = item.value().detach().clone().requires_grad_(true);
    }
    for (const auto& item : root->named_buffers()) copies[item.key().substr(4)] = item.value().clone();
    return copies;
  }

  std::shared_ptr<torch::nn::Module> root;
  MoeMlp moe;
};

at::Tensor Activated(Activation activation, const at::Tensor& x) {
  return activation == Activation::kGelu ? at::gelu(x) : at::silu(x);
}

struct Choice {
  at::Tensor mask;     // (tokens, experts): what a token chose
  at::Tensor weights;  // (tokens, experts), 0 elsewhere
  at::Tensor loss;     // of the batch, times its tokens
};

// Sum of squared coefficients of variation (Shazeer et al., eq. 7 and 11).
at::Tensor Variation(const at::Tensor& sums) {
  const at::Tensor mean = sums.mean();
  return (sums - mean).square().mean() / mean.square();
}

// The k-th largest of the other values of a row, for each column.
at::Tensor KthOfOthers(const at::Tensor& values, int k) {
  std::vector<at::Tensor> columns;
  for (int e = 0; e < kExperts; ++e) {
    at::Tensor hidden = at::zeros_like(values);
    hidden.select(1, e).fill_(-std::numeric_limits<double>::infinity());
    columns.push_back(std::get<0>(at::topk(values + hidden, k, 1)).select(1, k - 1));
  }
  return at::stack(columns, 1);
}

Choice Choose(const GateOptions& gate, const Parameters& p, const at::Tensor& x, bool training) {
  const std::uint64_t seed = base::DeriveSeed(kSeed, "router", kLayer);
  const at::Tensor tokens =
      at::arange(kFirstSample * kSequence, kFirstSample * kSequence + x.size(0), at::kLong);
  at::Tensor seen = x;
  if (training && gate.jitter > 0) {
    const at::Tensor u = dropout::UniformNumbers(base::DeriveSeed(seed, "gate jitter"), tokens, kWidth);
    seen = x * (1 - gate.jitter + 2 * gate.jitter * u);
  }
  const at::Tensor logits = at::linear(seen, p.at("router.weight"));
  at::Tensor noisy = logits, deviation;
  const bool has_noise = training && gate.kind == GateKind::kNoisyTopK;
  if (has_noise) {
    deviation = at::softplus(at::linear(seen, p.at("router.noise_weight")));
    noisy =
        logits + deviation * dropout::NormalNumbers(base::DeriveSeed(seed, "gate noise"), tokens, kExperts);
  }
  const at::Tensor probability = at::softmax(noisy, 1);
  const at::Tensor scores = gate.sigmoid ? at::sigmoid(noisy) : probability;
  at::Tensor order = noisy.detach();
  if (gate.kind == GateKind::kBias) order = scores.detach() + p.at("router.bias").to(at::kDouble);
  const at::Tensor ids = std::get<1>(at::topk(order, gate.k, 1));
  const at::Tensor mask = at::zeros_like(order).scatter_(1, ids, 1);
  at::Tensor weights = scores * mask;
  if (gate.kind != GateKind::kSwitch && gate.k > 1) weights = weights / weights.sum(1, true);
  at::Tensor balance = gate.experts * (mask.mean(0) / gate.k * probability.mean(0)).sum();
  if (gate.kind == GateKind::kNoisyTopK) {
    const at::Tensor load =
        has_noise ? at::special_ndtr((logits - KthOfOthers(noisy, gate.k)) / deviation) : mask;
    balance = Variation(weights.sum(0)) + Variation(load.sum(0));
  }
  if (gate.kind == GateKind::kGShard) {
    const at::Tensor first = at::zeros_like(order).scatter_(1, ids.narrow(1, 0, 1), 1);
    balance = gate.experts * (first.mean(0) * probability.mean(0)).sum();
    const at::Tensor u =
        dropout::UniformNumbers(base::DeriveSeed(seed, "second expert of a gate"), tokens, 1);
    const at::Tensor kept = (2 * weights.detach() > u).to(at::kDouble);
    if (training) weights = weights * (first + (1 - first) * kept);
  }
  if (gate.capacity_factor > 0) {
    const double rows =
        std::ceil(gate.k * static_cast<double>(x.size(0)) / gate.experts * gate.capacity_factor);
    weights = weights * mask.cumsum(0).le(rows);
  }
  at::Tensor loss = gate.z_weight * at::logsumexp(logits, 1).square().mean();
  if (gate.kind != GateKind::kBias) loss = loss + gate.balance_weight * balance;
  return {mask, weights, loss * x.size(0)};
}

at::Tensor EveryExpert(const MoeOptions& options, const Parameters& p, const at::Tensor& x,
                       const at::Tensor& weights) {
  const auto of = [&](const std::string& name, int e) {
    return p.count(name) > 0 ? p.at(name)[e] : at::Tensor();
  };
  at::Tensor y = at::zeros_like(x);
  for (int e = 0; e < kExperts; ++e) {
    at::Tensor wide = at::linear(x, of("experts.in_weight", e), of("experts.in_bias", e));
    if (options.gated) {
      wide = wide * Activated(options.activation,
                              at::linear(x, of("experts.gate_weight", e), of("experts.gate_bias", e)));
    } else {
      wide = Activated(options.activation, wide);
    }
    y = y +
        weights.narrow(1, e, 1) * at::linear(wide, of("experts.out_weight", e), of("experts.out_bias", e));
  }
  if (options.shared_hidden == 0) return y;
  const at::Tensor none;
  const auto shared = [&](const std::string& name) {
    return p.count("shared." + name) > 0 ? p.at("shared." + name) : none;
  };
  const at::Tensor wide =
      Activated(options.activation, at::linear(x, shared("in.weight"), shared("in.bias")));
  return y + at::linear(wide, shared("out.weight"), shared("out.bias"));
}

// Products of at most kTokens + kHidden terms through three layers; relative to the largest element.
constexpr double kTolerance = 1e-12;

void ExpectNear(const at::Tensor& expected, const at::Tensor& actual, const std::string& what) {
  ASSERT_EQ(expected.defined(), actual.defined()) << what;
  if (!expected.defined()) return;
  ASSERT_EQ(expected.sizes(), actual.sizes()) << what;
  const double scale = expected.abs().max().item<double>();
  EXPECT_GT(scale, 0) << what << ": nothing is compared";
  EXPECT_LE((expected - actual).abs().max().item<double>(), kTolerance * scale) << what;
}

MoeOptions Options(GateKind kind) {
  MoeOptions options = {.hidden = kHidden};
  options.gate = {.kind = kind, .experts = kExperts, .k = kind == GateKind::kSwitch ? 1 : 2, .z_weight = 0.2};
  if (kind != GateKind::kBias) options.gate.balance_weight = 0.7;
  if (kind == GateKind::kSwitch) options.gate.jitter = 0.3;
  if (kind == GateKind::kBias) options.gate.bias_rate = 0.125;
  return options;
}
constexpr GateKind kGates[] = {GateKind::kTopK, GateKind::kNoisyTopK, GateKind::kSwitch, GateKind::kGShard,
                               GateKind::kBias};

void ExpectDense(const MoeOptions& options, bool training) {
  SCOPED_TRACE(std::string(Name(options.gate.kind)) + (options.gated ? " gated" : "") +
               (options.shared_hidden > 0 ? " shared" : "") + (training ? " training" : " evaluation"));
  Layer layer(options);
  layer.root->train(training);
  const Parameters p = layer.Copies();
  const at::Tensor x = Random({kTokens, kWidth}, 99).requires_grad_(true),
                   gradient = Random({kTokens, kWidth}, 100);
  const at::Tensor same_x = x.detach().clone().requires_grad_(true);
  const Choice choice = Choose(options.gate, p, same_x, training);
  const at::Tensor expected = EveryExpert(options, p, same_x, choice.weights);
  const MoeMlp::Output out = layer.Forward(x);
  ExpectNear(expected, out.added.local(), "output");
  ASSERT_TRUE(out.loss.defined());
  at::Tensor sum = (out.added.local() * gradient).sum(), expected_sum = (expected * gradient).sum();
  if (training) {
    ExpectNear(choice.loss, out.loss, "loss");
    sum = sum + kLossFactor * out.loss;
    expected_sum = expected_sum + kLossFactor * choice.loss;
  } else {
    EXPECT_EQ(out.loss.item<double>(), 0);
  }
  sum.backward();
  expected_sum.backward();
  ExpectNear(same_x.grad(), x.grad(), "gradient of the input");
  for (const auto& item : layer.root->named_parameters()) {
    const std::string name = item.key().substr(4);
    if (name == "router.noise_weight" && !training) continue;  // has none
    ExpectNear(p.at(name).grad(), item.value().grad(), "gradient of " + name);
  }
}

TEST(MoeMlp, IsEveryExpertOnEveryToken) {
  for (const GateKind kind : kGates) {
    for (const bool gated : {false, true}) {
      for (const bool training : {true, false}) {
        MoeOptions options = Options(kind);
        options.gated = gated;
        options.activation = gated ? Activation::kSilu : Activation::kGelu;
        options.shared_hidden = gated ? 0 : 5;
        ExpectDense(options, training);
        options.shared_hidden = gated ? 5 : 0;
        options.bias = false;
        ExpectDense(options, training);
      }
    }
  }
}

TEST(MoeMlp, OtherOptions) {
  MoeOptions options = Options(GateKind::kBias);
  options.gate.sigmoid = true;
  ExpectDense(options, true);
  for (const int k : {1, kExperts}) {
    options = Options(GateKind::kTopK);
    options.gate.k = k;
    ExpectDense(options, true);
  }
  options = Options(GateKind::kTopK);
  options.gate.capacity_factor = 0.7;
  options.chunks = 3;
  ExpectDense(options, true);
}

std::vector<std::int64_t> RowsOfExpert(const Choice& choice) {
  const at::Tensor rows = choice.mask.sum(0).to(at::kLong);
  return {rows.const_data_ptr<std::int64_t>(), rows.const_data_ptr<std::int64_t>() + kExperts};
}

// A step of two micro-batches. Calls in between that are not final, or not in training, have no effect.
TEST(MoeMlp, LoadsAndBiasesAreThoseOfFinalCallsInTraining) {
  const MoeOptions options = Options(GateKind::kBias);
  Layer layer(options);
  const Parameters before = layer.Copies();
  const at::Tensor x = Random({kTokens, kWidth}, 99), other = Random({kTokens, kWidth}, 77);
  layer.Forward(x);
  layer.Forward(other, /*final=*/false);
  layer.root->eval();
  layer.Forward(other);
  layer.root->train();
  layer.Forward(x * 2);
  EXPECT_TRUE(layer.moe.load().rows_of_expert.empty()) << "a step that has not ended";
  EXPECT_TRUE(layer.Copies().at("router.bias").equal(before.at("router.bias"))) << "moved within a step";
  layer.moe.EndStep(/*updated=*/true);
  std::vector<std::int64_t> rows = RowsOfExpert(Choose(options.gate, before, x, true));
  const std::vector<std::int64_t> second = RowsOfExpert(Choose(options.gate, before, x * 2, true));
  at::Tensor moved = before.at("router.bias").clone();
  const double mean = 2.0 * 2 * kTokens / kExperts;
  for (int e = 0; e < kExperts; ++e) {
    rows[e] += second[e];
    ASSERT_NE(static_cast<double>(rows[e]), mean);
    moved[e] += rows[e] < mean ? 0.125 : -0.125;
  }
  EXPECT_EQ(layer.moe.load().rows_of_expert, rows);
  EXPECT_EQ(layer.moe.load().tokens, 2 * kTokens);
  EXPECT_EQ(layer.moe.load().rows_of_rank, (std::vector<std::int64_t>{2 * 2 * kTokens}));
  EXPECT_EQ(layer.moe.load().dropped, 0);
  EXPECT_EQ(layer.moe.load().not_finite, 0);
  EXPECT_TRUE(layer.Copies().at("router.bias").equal(moved));
  // Neither does a step move it that was skipped,
  layer.Forward(x);
  layer.moe.EndStep(/*updated=*/false);
  EXPECT_EQ(layer.moe.load().tokens, kTokens);
  EXPECT_TRUE(layer.Copies().at("router.bias").equal(moved));
  // nor one without calls that count.
  layer.Forward(x, /*final=*/false);
  layer.moe.EndStep(/*updated=*/true);
  EXPECT_TRUE(layer.moe.load().rows_of_expert.empty());
  EXPECT_TRUE(layer.Copies().at("router.bias").equal(moved));
}

// Without a shared expert nothing but the router sees such a token.
void ExpectOthersUnspoilt(const MoeOptions& options) {
  Layer layer(options);
  const at::Tensor x = Random({kTokens, kWidth}, 99);
  const at::Tensor whole = layer.Forward(x, /*final=*/false).added.local().detach();
  at::Tensor spoilt = x.clone();
  spoilt[4][2] = std::numeric_limits<double>::quiet_NaN();
  const MoeMlp::Output out = layer.Forward(spoilt);
  const at::Tensor y = out.added.local().detach();
  EXPECT_TRUE(y[4].isnan().all().item<bool>());
  // Products of other numbers of rows round otherwise.
  ExpectNear(whole.narrow(0, 0, 4), y.narrow(0, 0, 4), "tokens in front");
  ExpectNear(whole.narrow(0, 5, kTokens - 5), y.narrow(0, 5, kTokens - 5), "tokens behind");
  EXPECT_TRUE(out.loss.isnan().item<bool>());
  layer.moe.EndStep(/*updated=*/true);
  EXPECT_EQ(layer.moe.load().not_finite, 1);
  // Of the experts, by outputs of the others: the row was not sent to any.
  at::Tensor gradient = at::ones_like(y);
  gradient[4].zero_();
  out.added.local().backward(gradient);
  EXPECT_TRUE(layer.moe.experts().in.grad().isfinite().all().item<bool>());
  EXPECT_TRUE(layer.moe.experts().out_bias.grad().isfinite().all().item<bool>());
}

TEST(MoeMlp, TokensThatAreNotFiniteSpoilNoOthers) {
  for (const GateKind kind : kGates) {
    for (const std::int64_t shared : {0, 5}) {
      SCOPED_TRACE(std::string(Name(kind)) + (shared > 0 ? " shared" : ""));
      MoeOptions options = Options(kind);
      options.shared_hidden = shared;
      ExpectOthersUnspoilt(options);
    }
  }
}

}  // namespace
}  // namespace plait::moe
