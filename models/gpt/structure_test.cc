// Sizes, names, initial values, units and dropout.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "models/gpt/gpt.h"

namespace plait::gpt {
namespace {

const at::TensorOptions kNoMemory(at::kMeta);

GptOptions Tiny() {
  return {.vocab_size = 7, .block_size = 6, .n_layer = 3, .n_head = 2, .n_embd = 8, .bias = true};
}

// wordplay's model: 12/12/768 without biases, 65 symbols.
GptOptions Published() { return {.vocab_size = 65, .bias = false}; }

TEST(Gpt, HasThePublishedNumbersOfParameters) {
  const Gpt gpt(Published(), kNoMemory);
  EXPECT_EQ(models::CountParameters(gpt.units()), 85790208);
  EXPECT_EQ(ParameterCount(Published(), true), 85790208);
  EXPECT_EQ(ParameterCount(Published(), false), 85003776);
  std::map<bool, std::pair<std::int64_t, std::int64_t>> groups;  // decayed -> tensors, elements
  for (const models::ParameterUnit& unit : gpt.units()) {
    for (const models::ParameterSpec& parameter : unit.parameters) {
      auto& [tensors, elements] = groups[parameter.decays];
      ++tensors;
      elements += parameter.tensor.numel();
    }
  }
  EXPECT_EQ(groups[true], std::make_pair(std::int64_t{50}, std::int64_t{85771008}));
  EXPECT_EQ(groups[false], std::make_pair(std::int64_t{25}, std::int64_t{19200}));
}

// What Hugging Face's models of these names have.
TEST(Gpt, PresetsHaveTheParametersOfTheirNames) {
  const std::map<std::string, std::int64_t> counts = {
      {"gpt2", 124439808}, {"gpt2-medium", 354823168}, {"gpt2-large", 774030080}, {"gpt2-xl", 1557611200}};
  for (const auto& [name, count] : counts) {
    const absl::StatusOr<GptOptions> options = PresetNamed(name);
    ASSERT_TRUE(options.ok());
    EXPECT_EQ(models::CountParameters(Gpt(*options, kNoMemory).units()), count) << name;
    EXPECT_EQ(ParameterCount(*options, true), count) << name;
  }
  EXPECT_EQ(PresetNamed("shakespeare")->block_size, 256);
  EXPECT_EQ(PresetNamed("cpu")->n_embd, 128);
  EXPECT_EQ(PresetNamed("llama7B")->n_layer, 32);
  EXPECT_NE(PresetNamed("gpt3").status().message().find("there are gpt2, gpt2-medium"), std::string::npos);
}

TEST(Gpt, CountsTheOperationsOfPaLM) {
  // 6 x 85,003,776 + 12 x 12 x 12 x 64 x 1024
  EXPECT_EQ(FlopsPerToken(Published(), 1024), 623268864.0);
}

TEST(Gpt, NamesAreThoseOfGpt2) {
  GptOptions options = Tiny();
  options.n_layer = 1;
  std::vector<std::string> names;
  const Gpt gpt(options, kNoMemory);
  for (const auto& item : gpt.module()->named_parameters()) names.push_back(item.key());
  const std::string h = "transformer.h.0.";
  const std::vector<std::string> expected = {
      "transformer.wte.weight", "transformer.wpe.weight", h + "ln_1.weight",         h + "ln_1.bias",
      h + "attn.c_attn.weight", h + "attn.c_attn.bias",   h + "attn.c_proj.weight",  h + "attn.c_proj.bias",
      h + "ln_2.weight",        h + "ln_2.bias",          h + "mlp.c_fc.weight",     h + "mlp.c_fc.bias",
      h + "mlp.c_proj.weight",  h + "mlp.c_proj.bias",    "transformer.ln_f.weight", "transformer.ln_f.bias"};
  EXPECT_EQ(names, expected);
  EXPECT_EQ(gpt.parameters()[4].sizes(), (std::vector<std::int64_t>{24, 8}));
}

TEST(Gpt, UnitsHoldEveryParameterOnceUnderItsName) {
  const Gpt gpt(Tiny(), kNoMemory);
  const auto named = gpt.module()->named_parameters();
  const std::vector<models::ParameterUnit> units = gpt.units();
  ASSERT_EQ(units.size(), 4u);
  EXPECT_EQ(units[0].name, "root");
  EXPECT_EQ(units[0].parameters.size(), 4u);
  EXPECT_EQ(units[3].name, "transformer.h.2");
  std::size_t count = 0;
  for (const models::ParameterUnit& unit : units) {
    for (const models::ParameterSpec& parameter : unit.parameters) {
      ASSERT_TRUE(named.contains(parameter.name)) << parameter.name;
      EXPECT_TRUE(named[parameter.name].is_same(parameter.tensor)) << parameter.name;
      ++count;
    }
    EXPECT_EQ(unit.block, &unit - units.data() - 1);
  }
  EXPECT_EQ(count, named.size());
  EXPECT_EQ(gpt.blocks()[2]->Parameters().size(), units[3].parameters.size());
  EXPECT_TRUE(gpt.blocks()[2]->Parameters()[2].is_same(units[3].parameters[2].tensor));
}

TEST(Gpt, UnitByUnitStartsFromTheConstructorsNumbers) {
  torch::manual_seed(4);
  Gpt direct(Tiny(), at::kFloat);
  torch::manual_seed(4);
  const Gpt wide(Tiny(), at::kDouble);
  Gpt meta(Tiny(), kNoMemory);
  torch::manual_seed(4);
  const std::vector<models::ParameterUnit> units = meta.units();
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    for (const models::ParameterSpec& parameter : units[unit].parameters) {
      ASSERT_TRUE(parameter.tensor.is_meta());
      models::Materialize(parameter.tensor, at::empty(parameter.tensor.sizes(), at::kFloat));
    }
    meta.ResetParameters(unit);
  }
  for (std::size_t j = 0; j < direct.parameters().size(); ++j) {
    EXPECT_TRUE(meta.parameters()[j].equal(direct.parameters()[j])) << j;
    EXPECT_TRUE(wide.parameters()[j].equal(direct.parameters()[j].to(at::kDouble))) << j;
  }
  const at::Tensor tokens = at::randint(7, {2, 6}, at::kLong);
  EXPECT_TRUE(meta.Forward(tokens).equal(direct.Forward(tokens)));
}

// Vectors are 1 or 0. `of_outputs`: of the matrices that add to the residual stream.
void ExpectInitialValues(const Gpt& gpt, double deviation, double of_outputs) {
  for (const auto& item : gpt.module()->named_parameters()) {
    const std::string& name = item.key();
    const at::Tensor values = item.value().detach().to(at::kDouble);
    if (values.dim() == 1 || name.ends_with("_bias") || name.ends_with("noise_weight")) {
      const double expected = values.dim() == 1 && name.ends_with(".weight") ? 1 : 0;
      EXPECT_TRUE((values == expected).all().item<bool>()) << name;
      continue;
    }
    const bool is_output = name.ends_with("c_proj.weight") || name.ends_with("experts.out_weight") ||
                           name.ends_with("shared.out.weight");
    const double expected = is_output ? of_outputs : deviation;
    const double n = static_cast<double>(values.numel());
    // A mean of n is off by 1 / sqrt(n), a deviation by 1 / sqrt(2 n); five times as much in all is no
    // chance.
    EXPECT_NEAR(values.mean().item<double>(), 0, 5 * expected / std::sqrt(n)) << name;
    EXPECT_NEAR(values.std().item<double>(), expected, 5 * expected / std::sqrt(2 * n)) << name;
  }
}

TEST(Gpt, InitialValuesAreNanoGpts) {
  torch::manual_seed(6);
  GptOptions options = {.vocab_size = 65, .block_size = 64, .n_layer = 8, .n_head = 4, .n_embd = 128};
  ExpectInitialValues(Gpt(options, at::kFloat), 0.02, 0.02 / 4);  // sqrt(2 x 8)
  options.moe = {.gate = {.kind = moe::GateKind::kNoisyTopK, .experts = 4},
                 .hidden = 96,
                 .gated = true,
                 .shared_hidden = 80};
  ExpectInitialValues(Gpt(options, at::kFloat), 0.02, 0.02 / 4);
}

// The matrices in the order of the units, one stream of numbers.
TEST(Gpt, DrawsItsMatricesUnitByUnit) {
  torch::manual_seed(4);
  const Gpt gpt(Tiny(), at::kFloat);
  torch::manual_seed(4);
  for (const models::ParameterUnit& unit : gpt.units()) {
    for (const models::ParameterSpec& parameter : unit.parameters) {
      if (parameter.tensor.dim() == 1) continue;
      const double deviation = parameter.name.ends_with("c_proj.weight") ? 0.02 / std::sqrt(6.0) : 0.02;
      at::Tensor expected = at::empty(parameter.tensor.sizes()).normal_(0, deviation);
      EXPECT_TRUE(parameter.tensor.equal(expected)) << parameter.name;
    }
  }
}

TEST(Gpt, BlocksRunAlone) {
  Gpt gpt(Tiny(), at::kDouble);
  const models::Batch batch = {at::randint(7, {2, 6}, at::kLong), at::randint(7, {2, 6}, at::kLong)};
  std::vector<std::size_t> seen;
  const models::BlockRunner run = [&](std::size_t block, const models::BlockState& input,
                                      const models::BlockContext& context) {
    EXPECT_EQ(input.hidden.sizes(), (std::vector<std::int64_t>{2, 6, 8}));
    seen.push_back(block);
    gpt.blocks()[block]->Forward(input, context);  // activation checkpoints run a block again
    return gpt.blocks()[block]->Forward(input, context);
  };
  EXPECT_TRUE(models::RunModel(gpt, batch, run).sum.equal(models::RunModel(gpt, batch).sum));
  EXPECT_EQ(seen, (std::vector<std::size_t>{0, 1, 2}));
  models::BlockState state = models::RunBlocks(gpt, batch);
  state.auxiliary_loss = at::empty({});
  EXPECT_TRUE(gpt.blocks()[0]->Forward(state, {}).auxiliary_loss.is_same(state.auxiliary_loss));
}

// Divided by the valid targets, the balance loss is divided by all tokens.
TEST(Gpt, IgnoredTargetsDoNotRaiseTheAuxiliaryLoss) {
  GptOptions options = Tiny();
  options.moe = {.gate = {.experts = 2}, .hidden = 8};
  Gpt gpt(options, at::kDouble);
  const at::Tensor tokens = at::randint(7, {2, 6}, at::kLong);
  models::BlockState state = models::RunBlocks(gpt, {.inputs = tokens, .targets = tokens});
  state.auxiliary_loss = at::empty({}, at::kDouble).fill_(5).requires_grad_();
  for (const std::int64_t ignored : {0, 3, 12}) {
    at::Tensor targets = tokens.clone();
    targets.view({-1}).narrow(0, 0, ignored).fill_(-1);
    const at::Tensor none =
        gpt.Epilogue({.hidden = state.hidden}, {.inputs = tokens, .targets = targets}).sum;
    const models::LossSum loss = gpt.Epilogue(state, {.inputs = tokens, .targets = targets});
    EXPECT_EQ(loss.count, 12 - ignored);
    EXPECT_EQ(loss.sum.item<double>(), none.item<double>());
    state.auxiliary_loss.mutable_grad() = at::Tensor();
    loss.sum.backward({}, /*retain_graph=*/true);
    EXPECT_DOUBLE_EQ(state.auxiliary_loss.grad().item<double>(), static_cast<double>(12 - ignored) / 12);
  }
}

// What block 0 gets and adds, in training.
struct Seen {
  at::Tensor input, added;  // (batch, seq, n_embd)
};

Seen Observe(Gpt& gpt, const at::Tensor& tokens) {
  const at::Tensor input = gpt.Prologue({.inputs = tokens, .targets = {}}, {}).hidden;
  return {input.detach(), (gpt.blocks()[0]->Forward({.hidden = input}, {}).hidden - input).detach()};
}

constexpr double kDropout = 0.25;

// All are 0 or `left`, and 0 as often as the dropout says, within six deviations.
void ExpectDropped(const at::Tensor& values, double left, double probability_of_zero) {
  const at::Tensor zero = values == 0;
  EXPECT_TRUE(((values - left).abs() < 1e-12).logical_or(zero).all().item<bool>());
  const double n = static_cast<double>(values.numel());
  EXPECT_NEAR(zero.sum().item<double>() / n, probability_of_zero,
              6 * std::sqrt(probability_of_zero * (1 - probability_of_zero) / n));
}

class GptDropout : public ::testing::Test {
 protected:
  GptDropout() {
    torch::manual_seed(9);
    for (const auto& item : gpt_.module()->named_parameters()) {
      parameters_[item.key()] = item.value().detach();
      item.value().detach().zero_();
    }
    parameters_["transformer.wte.weight"].fill_(1);
  }
  at::Tensor Parameter(const std::string& name, int layer = 0) {
    return parameters_.at("transformer.h." + std::to_string(layer) + "." + name);
  }

  Gpt gpt_{{.vocab_size = 7, .block_size = 8, .n_layer = 2, .n_head = 4, .n_embd = 16, .dropout = kDropout},
           at::kDouble};
  std::map<std::string, at::Tensor> parameters_;
  at::Tensor tokens_ = at::randint(7, {100, 8}, at::kLong);
};

TEST_F(GptDropout, ActsOnEmbeddings) {
  ExpectDropped(Observe(gpt_, tokens_).input, 1 / (1 - kDropout), kDropout);
}

TEST_F(GptDropout, ActsOnWhatAttentionAdds) {
  Parameter("attn.c_proj.bias").fill_(1);
  ExpectDropped(Observe(gpt_, tokens_).added, 1 / (1 - kDropout), kDropout);
}

TEST_F(GptDropout, ActsOnWhatTheMlpAdds) {
  Parameter("mlp.c_proj.bias").fill_(1);
  ExpectDropped(Observe(gpt_, tokens_).added, 1 / (1 - kDropout), kDropout);
}

// Values are 1, and the first position has one probability, 1: dropped there, then where it is added. A
// head's four elements share the first.
TEST_F(GptDropout, ActsOnAttentionsProbabilities) {
  Parameter("attn.c_attn.bias").fill_(1);
  Parameter("attn.c_proj.weight").copy_(at::eye(16, at::kDouble));
  const at::Tensor first = Observe(gpt_, tokens_).added.select(1, 0);
  const double left = 1 / (1 - kDropout);
  EXPECT_TRUE(((first - left * left).abs() < 1e-12).logical_or(first == 0).all().item<bool>());
  const at::Tensor whole_heads = (first.view({100, 4, 4}) == 0).all(2).to(at::kDouble).mean();
  const double expected = kDropout + (1 - kDropout) * std::pow(kDropout, 4);
  EXPECT_NEAR(whole_heads.item<double>(), expected, 6 * std::sqrt(expected * (1 - expected) / 400));
}

// Two masks drop the same element as often as independent ones.
TEST_F(GptDropout, DiffersBetweenLayersAndSites) {
  const models::BlockState input = gpt_.Prologue({.inputs = tokens_, .targets = {}}, {});
  std::vector<at::Tensor> dropped = {input.hidden == 0};
  for (const int layer : {0, 1}) {
    Parameter("attn.c_proj.bias", layer).fill_(1);
    Parameter("mlp.c_proj.bias", layer).fill_(8);
    const at::Tensor added =
        (gpt_.blocks()[layer]->Forward({.hidden = input.hidden}, {}).hidden - input.hidden).detach();
    const at::Tensor of_mlp = added < 4;
    dropped.push_back(of_mlp);
    dropped.push_back((added - of_mlp.logical_not() * (8 / (1 - kDropout))).abs() < 0.5);
  }
  const double n = static_cast<double>(dropped[0].numel()), both = kDropout * kDropout;
  for (std::size_t i = 0; i < dropped.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_NEAR(dropped[i].logical_and(dropped[j]).sum().item<double>() / n, both,
                  6 * std::sqrt(both * (1 - both) / n))
          << i << " and " << j;
    }
  }
}

TEST_F(GptDropout, IsAbsentOutsideTraining) {
  Parameter("attn.c_proj.bias").fill_(1);
  gpt_.SetTraining(false);
  const Seen seen = Observe(gpt_, tokens_);
  EXPECT_TRUE(seen.input.equal(at::ones_like(seen.input)));
  EXPECT_TRUE(seen.added.equal(at::ones_like(seen.added)));
}

TEST(Gpt, DescribesItselfAsPyTorchDoes) {
  EXPECT_EQ(Gpt(Published(), kNoMemory).Description(), R"(GPT(
  (transformer): ModuleDict(
    (wte): Embedding(65, 768)
    (wpe): Embedding(1024, 768)
    (drop): Dropout(p=0.0, inplace=False)
    (h): ModuleList(
      (0-11): 12 x Block(
        (ln_1): LayerNorm()
        (attn): CausalSelfAttention(
          (c_attn): Linear(in_features=768, out_features=2304, bias=False)
          (c_proj): Linear(in_features=768, out_features=768, bias=False)
          (attn_dropout): Dropout(p=0.0, inplace=False)
          (resid_dropout): Dropout(p=0.0, inplace=False)
        )
        (ln_2): LayerNorm()
        (mlp): MLP(
          (c_fc): Linear(in_features=768, out_features=3072, bias=False)
          (gelu): GELU(approximate='none')
          (c_proj): Linear(in_features=3072, out_features=768, bias=False)
          (dropout): Dropout(p=0.0, inplace=False)
        )
      )
    )
    (ln_f): LayerNorm()
  )
  (lm_head): Linear(in_features=768, out_features=65, bias=False)
))");
}

}  // namespace
}  // namespace plait::gpt
