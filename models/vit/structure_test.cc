// Sizes, names, initial values, units and dropout.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "models/vit/vit.h"

namespace plait::vit {
namespace {

const at::TensorOptions kNoMemory(at::kMeta);

VitOptions Tiny(Pool pool = Pool::kMean) {
  return {.image_size = 8,
          .patch_size = 4,
          .dim = 8,
          .depth = 3,
          .heads = 2,
          .head_dim = 4,
          .mlp_dim = 16,
          .classes = 5,
          .pool = pool};
}

// 224/16, dim 1024, 16 heads of 64, depth 24, the mean of patches, no biases of queries, keys and values.
TEST(Vit, HasThePublishedNumbersOfParameters) {
  EXPECT_EQ(models::CountParameters(Vit({}, kNoMemory).units()), 304250856);
  EXPECT_EQ(ParameterCount({}), 304250856);
  // timm's vit_*_patch16_224.
  const std::map<std::string, std::int64_t> counts = {
      {"vit-tiny", 5717416}, {"vit-small", 22050664}, {"vit-base", 86567656}, {"vit-large", 304326632}};
  for (const auto& [name, count] : counts) {
    const absl::StatusOr<VitOptions> options = PresetNamed(name);
    ASSERT_TRUE(options.ok());
    EXPECT_EQ(models::CountParameters(Vit(*options, kNoMemory).units()), count) << name;
    EXPECT_EQ(ParameterCount(*options), count) << name;
  }
  EXPECT_EQ(PresetNamed("cpu")->tokens(), 64);
  EXPECT_NE(PresetNamed("vit-9").status().message().find("there are vit-tiny, vit-small"), std::string::npos);
}

// ViT-B/16 of one image: 17.56 G mult-adds as DeiT III reports (Touvron et al., arXiv:2204.07118, table 2: 17.5
// x 10^9), of which norms and biases are no products.
TEST(Vit, CountsTheOperationsThatArePublished) {
  EXPECT_NEAR(FlopsPerImage(*PresetNamed("vit-base")) / 6, 17.5e9, 0.1e9);
  EXPECT_NEAR(FlopsPerImage(*PresetNamed("vit-small")) / 6, 4.6e9, 0.05e9);
}

TEST(Vit, RefusesSizesThatCannotWork) {
  const auto problem = [](VitOptions options) { return std::string(Validate(options).message()); };
  EXPECT_EQ(problem({.heads = 0}), "heads is 0; expected 1 to 2147483648");
  EXPECT_EQ(problem({.classes = -1}), "classes is -1; expected 1 to 2147483648");
  EXPECT_EQ(problem({.image_size = 30}), "image_size is 30; expected a multiple of patch_size, which is 16");
  EXPECT_EQ(problem({.dropout = 1}), "dropout is 1; expected a number in [0, 1)");
  EXPECT_EQ(problem({.norm_eps = 0}), "norm_eps is 0; expected above 0");
  EXPECT_EQ(problem({}), "");
}

TEST(Vit, NamesAreTimms) {
  VitOptions options = Tiny();
  options.depth = 1;
  const auto names_of = [](const VitOptions& o) {
    std::vector<std::string> names;
    const Vit vit(o, kNoMemory);
    for (const auto& item : vit.module()->named_parameters()) names.push_back(item.key());
    return names;
  };
  const std::string b = "blocks.0.";
  const std::vector<std::string> expected = {"pos_embed",
                                             "patch_embed.proj.weight",
                                             "patch_embed.proj.bias",
                                             b + "norm1.weight",
                                             b + "norm1.bias",
                                             b + "attn.qkv.weight",
                                             b + "attn.proj.weight",
                                             b + "attn.proj.bias",
                                             b + "norm2.weight",
                                             b + "norm2.bias",
                                             b + "mlp.fc1.weight",
                                             b + "mlp.fc1.bias",
                                             b + "mlp.fc2.weight",
                                             b + "mlp.fc2.bias",
                                             "fc_norm.weight",
                                             "fc_norm.bias",
                                             "head.weight",
                                             "head.bias"};
  EXPECT_EQ(names_of(options), expected);
  options.pool = Pool::kClassToken;
  options.qkv_bias = true;
  const std::vector<std::string> published = names_of(options);
  EXPECT_EQ(published[0], "cls_token");
  EXPECT_EQ(published[7], b + "attn.qkv.bias");
  EXPECT_EQ(published[16], "norm.weight");
  EXPECT_EQ(Vit(options, kNoMemory).parameters()[1].sizes(), (std::vector<std::int64_t>{1, 5, 8}));
}

TEST(Vit, UnitsHoldEveryParameterOnceUnderItsName) {
  const Vit vit(Tiny(Pool::kClassToken), kNoMemory);
  const auto named = vit.module()->named_parameters();
  const std::vector<models::ParameterUnit> units = vit.units();
  ASSERT_EQ(units.size(), 4u);
  EXPECT_EQ(units[3].name, "blocks.2");
  std::size_t count = 0;
  for (const models::ParameterUnit& unit : units) {
    for (const models::ParameterSpec& parameter : unit.parameters) {
      ASSERT_TRUE(named.contains(parameter.name)) << parameter.name;
      EXPECT_TRUE(named[parameter.name].is_same(parameter.tensor)) << parameter.name;
      const bool embedding = parameter.name == "pos_embed" || parameter.name == "cls_token";
      EXPECT_EQ(parameter.decays, parameter.tensor.dim() > 1 && !embedding) << parameter.name;
      ++count;
    }
  }
  EXPECT_EQ(count, named.size());
}

TEST(Vit, UnitByUnitStartsFromTheConstructorsNumbers) {
  torch::manual_seed(4);
  Vit direct(Tiny(Pool::kClassToken), at::kFloat);
  Vit meta(Tiny(Pool::kClassToken), kNoMemory);
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
}

TEST(Vit, InitialValuesAreNormalOfDeviationTwoHundredths) {
  torch::manual_seed(6);
  const Vit vit({.image_size = 32,
                 .patch_size = 4,
                 .dim = 128,
                 .depth = 2,
                 .heads = 4,
                 .head_dim = 32,
                 .mlp_dim = 256,
                 .classes = 10,
                 .qkv_bias = true,
                 .pool = Pool::kClassToken},
                at::kFloat);
  for (const auto& item : vit.module()->named_parameters()) {
    const std::string& name = item.key();
    const at::Tensor values = item.value().detach().to(at::kDouble);
    if (values.dim() == 1) {
      EXPECT_TRUE((values == (name.ends_with(".weight") ? 1.0 : 0.0)).all().item<bool>()) << name;
      continue;
    }
    const double n = static_cast<double>(values.numel());
    // A mean of n is off by 1 / sqrt(n), a deviation by 1 / sqrt(2 n); five times as much in all is no chance.
    EXPECT_NEAR(values.mean().item<double>(), 0, 5 * 0.02 / std::sqrt(n)) << name;
    EXPECT_NEAR(values.std().item<double>(), 0.02, 5 * 0.02 / std::sqrt(2 * n)) << name;
  }
}

TEST(Vit, BlocksRunAlone) {
  Vit vit(Tiny(), at::kDouble);
  const models::Batch batch = {at::randn({2, 3, 8, 8}, at::kDouble), at::zeros({2}, at::kLong)};
  std::vector<std::size_t> seen;
  const models::BlockRunner run = [&](std::size_t block, const models::BlockState& input,
                                      const models::BlockContext& context) {
    EXPECT_EQ(input.hidden.sizes(), (std::vector<std::int64_t>{2, 4, 8}));
    seen.push_back(block);
    return vit.blocks()[block]->Forward(input, context);
  };
  EXPECT_TRUE(models::RunModel(vit, batch, run).sum.equal(models::RunModel(vit, batch).sum));
  EXPECT_EQ(seen, (std::vector<std::size_t>{0, 1, 2}));
  // dt scales what each half adds.
  const at::Tensor x = at::randn({2, 4, 8}, at::kDouble);
  const auto forward = [&](double dt) {
    return (vit.blocks()[0]->Forward({.hidden = x}, {.dt = dt}).hidden - x).detach();
  };
  EXPECT_LT((forward(1e-5) * 1e5 - forward(2e-5) * 5e4).abs().max().item<double>(), 1e-3);
  EXPECT_EQ(forward(0).abs().max().item<double>(), 0);
}

constexpr double kDropout = 0.25;

// All are 0 or `left`, and 0 as often as dropout says, within six deviations.
void ExpectDropped(const at::Tensor& values, double left) {
  const at::Tensor zero = values == 0;
  EXPECT_TRUE(((values - left).abs() < 1e-12).logical_or(zero).all().item<bool>());
  const double n = static_cast<double>(values.numel());
  EXPECT_NEAR(zero.sum().item<double>() / n, kDropout, 6 * std::sqrt(kDropout * (1 - kDropout) / n));
}

class VitDropout : public ::testing::TestWithParam<Attention> {
 protected:
  static VitOptions Options() {
    VitOptions options = Tiny();
    options.depth = 1;
    options.dropout = kDropout;
    options.attention = GetParam();
    return options;
  }
  VitDropout() : vit_(Options(), at::kDouble) {
    torch::manual_seed(9);
    for (const auto& item : vit_.module()->named_parameters()) {
      parameters_[item.key()] = item.value().detach();
      item.value().detach().zero_();
    }
    parameters_["pos_embed"].fill_(1);
  }
  at::Tensor Input() { return vit_.Prologue({.inputs = images_, .targets = {}}, {}).hidden.detach(); }
  at::Tensor Added() {
    const at::Tensor x = Input();
    return (vit_.blocks()[0]->Forward({.hidden = x}, {}).hidden - x).detach();
  }

  Vit vit_;
  std::map<std::string, at::Tensor> parameters_;
  at::Tensor images_ = at::zeros({200, 3, 8, 8}, at::kDouble);
};

TEST_P(VitDropout, ActsWhereGptsDoes) {
  ExpectDropped(Input(), 1 / (1 - kDropout));
  parameters_["blocks.0.attn.proj.bias"].fill_(1);
  ExpectDropped(Added(), 1 / (1 - kDropout));
  parameters_["blocks.0.attn.proj.bias"].zero_();
  parameters_["blocks.0.mlp.fc2.bias"].fill_(1);
  ExpectDropped(Added(), 1 / (1 - kDropout));
}

// Values are 1 in all tokens, so each output of a head is the sum of four probabilities of 1/4 that are left: a
// multiple of 1/3.
TEST_P(VitDropout, ActsOnAttentionsProbabilities) {
  parameters_["blocks.0.norm1.bias"].fill_(1);
  parameters_["blocks.0.attn.qkv.weight"].narrow(0, 16, 8).fill_(1.0 / 8);
  parameters_["blocks.0.attn.proj.weight"].fill_(1.0 / 8);
  const at::Tensor thirds = Added() * (1 - kDropout) * 4 * (1 - kDropout) * 2;  // of two heads
  EXPECT_LT((thirds - thirds.round()).abs().max().item<double>(), 1e-9);
  EXPECT_GT(thirds.std().item<double>(), 1);
}

TEST_P(VitDropout, IsAbsentOutsideTraining) {
  vit_.SetTraining(false);
  parameters_["blocks.0.attn.proj.bias"].fill_(1);
  EXPECT_TRUE((Input() == 1).all().item<bool>());
  EXPECT_TRUE((Added() == 1).all().item<bool>());
}

INSTANTIATE_TEST_SUITE_P(Kinds, VitDropout, ::testing::Values(Attention::kSdpa, Attention::kMath));

TEST(Vit, DescribesItselfAsPyTorchDoes) {
  EXPECT_EQ(Vit({}, kNoMemory).Description(), R"(VisionTransformer(
  (patch_embed): PatchEmbed(
    (proj): Conv2d(3, 1024, kernel_size=(16, 16), stride=(16, 16))
  )
  (pos_drop): Dropout(p=0.0, inplace=False)
  (blocks): Sequential(
    (0-23): 24 x Block(
      (norm1): LayerNorm((1024,), eps=1e-06, elementwise_affine=True)
      (attn): Attention(
        (qkv): Linear(in_features=1024, out_features=3072, bias=False)
        (attn_drop): Dropout(p=0.0, inplace=False)
        (proj): Linear(in_features=1024, out_features=1024, bias=True)
        (proj_drop): Dropout(p=0.0, inplace=False)
      )
      (norm2): LayerNorm((1024,), eps=1e-06, elementwise_affine=True)
      (mlp): Mlp(
        (fc1): Linear(in_features=1024, out_features=4096, bias=True)
        (act): GELU(approximate='none')
        (fc2): Linear(in_features=4096, out_features=1024, bias=True)
        (drop): Dropout(p=0.0, inplace=False)
      )
    )
  )
  (fc_norm): LayerNorm((1024,), eps=1e-06, elementwise_affine=True)
  (head): Linear(in_features=1024, out_features=1000, bias=True)
))");
}

}  // namespace
}  // namespace plait::vit
