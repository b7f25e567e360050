// The decoder against loops over doubles.
#include "models/llama/llama.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <cmath>
#include <complex>
#include <map>
#include <string>
#include <vector>

#include "base/testing/nan_is_infinite.h"

namespace plait::llama {
namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

// Six query heads of width 4 share two key heads.
constexpr std::int64_t kVocabulary = 11, kPositions = 9, kDim = 24, kHeads = 6, kKvHeads = 2, kWidth = 4,
                       kHidden = 20;

LlamaOptions Small() {
  return {.vocab_size = kVocabulary,
          .max_seq_len = kPositions,
          .dim = kDim,
          .n_layers = 2,
          .n_heads = kHeads,
          .n_kv_heads = kKvHeads,
          .hidden = kHidden,
          .rope_theta = 50};
}

Llama Drawn(at::ScalarType type) {
  Llama llama(Small(), type);
  torch::manual_seed(5);
  for (const at::Tensor& parameter : llama.parameters()) {
    const at::Tensor values = at::randn(parameter.sizes(), at::kDouble);
    const bool matrix = parameter.dim() == 2;
    parameter.detach().copy_(matrix ? values.div_(std::sqrt(parameter.size(1))) : values.mul_(0.3).add_(0.7));
  }
  return llama;
}

struct Weights {
  explicit Weights(const Llama& llama) {
    for (const auto& item : llama.module()->named_parameters()) {
      const at::Tensor flat = item.value().detach().to(at::kDouble).flatten();
      const double* data = flat.const_data_ptr<double>();
      values[item.key()] = Row(data, data + flat.numel());
    }
  }
  const Row& operator[](const std::string& name) const { return values.at(name + ".weight"); }

  std::map<std::string, Row> values;
};

Row Times(const Row& weight, const Row& x) {
  Row y(weight.size() / x.size(), 0.0);
  for (std::size_t i = 0; i < weight.size(); ++i) y[i / x.size()] += weight[i] * x[i % x.size()];
  return y;
}

Row Norm(const Row& weight, Row x) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + 1e-5);
  for (std::size_t k = 0; k < x.size(); ++k) x[k] *= scale * weight[k];
  return x;
}

// Pairs as complex numbers, turned by position / theta^(2 pair / width).
Row Turned(Row x, std::size_t position) {
  for (std::size_t k = 0; k < x.size(); k += 2) {
    const double pair = static_cast<double>(k % kWidth) / 2;
    const double angle = static_cast<double>(position) / std::pow(50.0, 2 * pair / kWidth);
    const std::complex<double> turned = std::complex<double>(x[k], x[k + 1]) * std::polar(1.0, angle);
    x[k] = turned.real();
    x[k + 1] = turned.imag();
  }
  return x;
}

Row Attention(const Rows& queries, const Rows& keys, const Rows& values, std::size_t i) {
  Row out(kDim, 0.0);
  for (std::int64_t head = 0; head < kHeads; ++head) {
    const std::int64_t q = head * kWidth, kv = head / (kHeads / kKvHeads) * kWidth;
    Row shares(i + 1, 0.0);
    double sum = 0;
    for (std::size_t j = 0; j <= i; ++j) {
      double score = 0;
      for (std::int64_t k = 0; k < kWidth; ++k) score += queries[i][q + k] * keys[j][kv + k];
      sum += shares[j] = std::exp(score / std::sqrt(static_cast<double>(kWidth)));
    }
    for (std::size_t j = 0; j <= i; ++j) {
      for (std::int64_t k = 0; k < kWidth; ++k) out[q + k] += shares[j] / sum * values[j][kv + k];
    }
  }
  return out;
}

void AddTo(Row& x, const Row& y, double factor) {
  for (std::size_t k = 0; k < x.size(); ++k) x[k] += factor * y[k];
}

void Block(Rows& x, const Weights& w, const std::string& name, double dt) {
  Rows queries, keys, values;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Row n = Norm(w[name + "attention_norm"], x[i]);
    queries.push_back(Turned(Times(w[name + "attention.wq"], n), i));
    keys.push_back(Turned(Times(w[name + "attention.wk"], n), i));
    values.push_back(Times(w[name + "attention.wv"], n));
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    AddTo(x[i], Times(w[name + "attention.wo"], Attention(queries, keys, values, i)), dt);
    const Row n = Norm(w[name + "ffn_norm"], x[i]);
    Row gate = Times(w[name + "feed_forward.w1"], n);
    const Row up = Times(w[name + "feed_forward.w3"], n);
    for (std::size_t k = 0; k < gate.size(); ++k) gate[k] *= up[k] / (1 + std::exp(-gate[k]));
    AddTo(x[i], Times(w[name + "feed_forward.w2"], gate), dt);
  }
}

// The largest difference from the loops.
double Error(Llama llama, const at::Tensor& tokens, double dt = 1) {
  const Weights w(llama);
  const at::Tensor logits =
      models::RunOutput(llama, {.inputs = tokens, .targets = {}}, {}, {.dt = dt}).detach().to(at::kDouble);
  double error = 0;
  for (std::int64_t b = 0; b < tokens.size(0); ++b) {
    Rows x;
    for (std::int64_t t = 0; t < tokens.size(1); ++t) {
      const auto row = w["tok_embeddings"].begin() + tokens[b][t].item<std::int64_t>() * kDim;
      x.emplace_back(row, row + kDim);
    }
    for (const char* name : {"layers.0.", "layers.1."}) Block(x, w, name, dt);
    for (std::size_t t = 0; t < x.size(); ++t) {
      const Row expected = Times(w["output"], Norm(w["norm"], x[t]));
      for (std::int64_t v = 0; v < kVocabulary; ++v) {
        error = std::max(error, base::NanIsInfinite(std::abs(logits[b][t][v].item<double>() - expected[v])));
      }
    }
  }
  return error;
}

// Per block the longest chain is: norm 24, product 24, scores 4, attention 9, wo 24, norm 24, w1 24, w2 20;
// then norm and head. Values are at most 8 in size, norms scale by less than 4.
constexpr double kBound = (2 * (24 + 24 + 4 + 9 + 24 + 24 + 24 + 20) + 24 + 24) * 8 * 4;

TEST(Llama, ForwardIsTheSumsWrittenOut) {
  const at::Tensor tokens = at::randint(kVocabulary, {3, kPositions}, at::kLong);
  EXPECT_LE(Error(Drawn(at::kDouble), tokens), kBound * 0x1p-53);
  EXPECT_LE(Error(Drawn(at::kDouble), tokens.narrow(1, 0, 5)), kBound * 0x1p-53);
  EXPECT_LE(Error(Drawn(at::kDouble), tokens, /*dt=*/0.375), kBound * 0x1p-53);
  EXPECT_LE(Error(Drawn(at::kFloat), tokens), kBound * 0x1p-24);
  // Some twelve results a block are rounded, at sizes up to 8.
  EXPECT_EQ(Drawn(at::kBFloat16).Forward(tokens).scalar_type(), at::kBFloat16);
  EXPECT_LE(Error(Drawn(at::kBFloat16), tokens), std::sqrt(2 * 12 + 2) * 8 * 0x1p-8);
}

TEST(Llama, GradientsAreThoseOfDifferences) {
  Llama llama = Drawn(at::kDouble);
  const models::Batch batch = {at::randint(kVocabulary, {3, kPositions}, at::kLong),
                               at::randint(kVocabulary, {3, kPositions}, at::kLong)};
  const auto loss = [&] { return models::RunModel(llama, batch).sum.div(3 * kPositions); };
  loss().backward();
  for (const at::Tensor& parameter : llama.parameters()) {
    const at::NoGradGuard no_grad;
    at::Tensor direction = at::randn_like(parameter);
    direction.div_(direction.norm());
    const at::Tensor start = parameter.clone();
    const double h = 1e-4;
    parameter.detach().copy_(start + direction * h);
    const double above = loss().item<double>();
    parameter.detach().copy_(start - direction * h);
    const double below = loss().item<double>();
    parameter.detach().copy_(start);
    // Third derivatives below 60 give h^2 10; the rounding of a loss is divided by h.
    EXPECT_NEAR((parameter.grad() * direction).sum().item<double>(), (above - below) / (2 * h),
                h * h * 10 + kBound * 0x1p-53 / h);
    EXPECT_GT(parameter.grad().norm().item<double>(), 1e-3) << parameter.sizes();
  }
}

TEST(Llama, HasTheKnownNumberOfParameters) {
  const Llama llama({}, at::TensorOptions(at::kMeta));
  const std::vector<models::ParameterUnit> units = llama.units();
  EXPECT_EQ(models::CountParameters(units), 33599744);
  EXPECT_EQ(ParameterCount({}), 33599744);
  ASSERT_EQ(units.size(), 25u);
  EXPECT_EQ(models::CountParameters({units[24]}), 717312);
  EXPECT_EQ(units[24].name, "layers.23");
  EXPECT_EQ(units[24].parameters[1].name, "layers.23.attention.wk.weight");
  EXPECT_EQ(units[24].parameters[1].tensor.sizes(), (std::vector<std::int64_t>{64, 256}));
  // 6 x 25,407,744 + 12 x 24 x 256 x 128
  EXPECT_EQ(FlopsPerToken({}, 128), 161883648.0);
}

TEST(Llama, UnitByUnitStartsFromTheConstructorsNumbers) {
  torch::manual_seed(4);
  Llama direct(Small(), at::kFloat);
  Llama meta(Small(), at::TensorOptions(at::kMeta));
  torch::manual_seed(4);
  const std::vector<models::ParameterUnit> units = meta.units();
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    for (const models::ParameterSpec& parameter : units[unit].parameters) {
      models::Materialize(parameter.tensor, at::empty(parameter.tensor.sizes(), at::kFloat));
    }
    meta.ResetParameters(unit);
  }
  for (std::size_t j = 0; j < direct.parameters().size(); ++j) {
    EXPECT_TRUE(meta.parameters()[j].equal(direct.parameters()[j])) << j;
  }
  const at::Tensor tokens = at::randint(kVocabulary, {2, kPositions}, at::kLong);
  EXPECT_TRUE(meta.Forward(tokens).equal(direct.Forward(tokens)));
}

// Of blocks, as torchtitan's: 0.02, and less the deeper for what adds to the residual stream, and for w3.
TEST(Llama, InitialValuesOfBlocksAreTorchtitans) {
  torch::manual_seed(6);
  const Llama llama({.vocab_size = 11,
                     .max_seq_len = 8,
                     .dim = 96,
                     .n_layers = 3,
                     .n_heads = 4,
                     .n_kv_heads = 2,
                     .hidden = 80},
                    at::kFloat);
  for (const models::ParameterUnit& unit : llama.units()) {
    if (unit.block < 0) continue;
    for (const models::ParameterSpec& parameter : unit.parameters) {
      const at::Tensor values = parameter.tensor.detach().to(at::kDouble);
      if (values.dim() == 1) {
        EXPECT_TRUE((values == 1).all().item<bool>()) << parameter.name;
        continue;
      }
      const bool is_deep = parameter.name.ends_with("wo.weight") || parameter.name.ends_with("w2.weight") ||
                           parameter.name.ends_with("w3.weight");
      const double deviation = is_deep ? 0.02 / std::sqrt(2.0 * static_cast<double>(unit.block + 1)) : 0.02;
      // As in GPT's test.
      const double n = static_cast<double>(values.numel());
      EXPECT_NEAR(values.mean().item<double>(), 0, 5 * deviation / std::sqrt(n)) << parameter.name;
      EXPECT_NEAR(values.std().item<double>(), deviation, 5 * deviation / std::sqrt(2 * n)) << parameter.name;
    }
  }
}

// Unit-size states times a head of variance 1 / dim, cut at three deviations (variance 0.9733): logits of
// that variance, so the expected loss is log(vocabulary) + 0.9733 / 2. A mean over 128 tokens is off by
// sqrt(0.9733 / 128) = 0.087.
TEST(Llama, StartsAtTheLossOfItsInitialValues) {
  torch::manual_seed(2);
  Llama llama({.vocab_size = 4000, .n_layers = 2}, at::kFloat);
  const models::LossSum loss =
      models::RunModel(llama, {at::randint(4000, {2, 64}, at::kLong), at::randint(4000, {2, 64}, at::kLong)});
  EXPECT_EQ(loss.count, 128);
  EXPECT_NEAR(loss.sum.item<double>() / 128, std::log(4000) + 0.9733 / 2, 5 * 0.087);
  EXPECT_LE(llama.parameters().back().abs().max().item<double>(), 3 / 16.0 * (1 + 1e-6));
}

TEST(Llama, BlocksRunAlone) {
  Llama llama = Drawn(at::kDouble);
  const models::Batch batch = {.inputs = at::randint(kVocabulary, {2, kPositions}, at::kLong), .targets = {}};
  std::vector<std::size_t> seen;
  const models::BlockRunner run = [&](std::size_t block, const models::BlockState& input,
                                      const models::BlockContext& context) {
    EXPECT_EQ(input.hidden.sizes(), (std::vector<std::int64_t>{2, kPositions, kDim}));
    seen.push_back(block);
    return llama.blocks()[block]->Forward(input, context);
  };
  EXPECT_TRUE(models::RunOutput(llama, batch, run).equal(llama.Forward(batch.inputs)));
  EXPECT_EQ(seen, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(llama.blocks()[1]->Parameters().size(), 9u);
}

TEST(Llama, DescribesItself) {
  EXPECT_EQ(Llama(Small(), at::TensorOptions(at::kMeta)).Description(), R"(Transformer(
  (tok_embeddings): Embedding(11, 24)
  (layers): ModuleList(
    (0-1): 2 x TransformerBlock(
      (attention): Attention(
        (wq): Linear(in_features=24, out_features=24, bias=False)
        (wk): Linear(in_features=24, out_features=8, bias=False)
        (wv): Linear(in_features=24, out_features=8, bias=False)
        (wo): Linear(in_features=24, out_features=24, bias=False)
      )
      (feed_forward): FeedForward(
        (w1): Linear(in_features=24, out_features=20, bias=False)
        (w2): Linear(in_features=20, out_features=24, bias=False)
        (w3): Linear(in_features=24, out_features=20, bias=False)
      )
      (attention_norm): RMSNorm()
      (ffn_norm): RMSNorm()
    )
  )
  (norm): RMSNorm()
  (output): Linear(in_features=24, out_features=11, bias=False)
))");
}

TEST(LlamaDeathTest, RefusesWhatItCannotRead) {
  Llama llama(Small(), at::kFloat);
  EXPECT_DEATH(llama.Forward(at::randint(5, {1, 10}, at::kLong)), "10 positions, the model has 9");
  EXPECT_DEATH(Llama({.n_kv_heads = 3}, at::kFloat), "n_kv_heads is 3; expected a divisor of n_heads");
  EXPECT_DEATH(Llama({.n_heads = 256}, at::kFloat), "expected heads of an even width");
}

}  // namespace
}  // namespace plait::llama
