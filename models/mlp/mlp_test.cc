// The perceptron against products written out in float64.
#include "models/mlp/mlp.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <cmath>

namespace plait::mlp {
namespace {

// y = W x + b, one sample, by loops.
std::vector<double> Linear(const at::Tensor& weight, const at::Tensor& bias, const std::vector<double>& x) {
  std::vector<double> y;
  for (std::int64_t row = 0; row < weight.size(0); ++row) {
    double sum = bias[row].item<double>();
    for (std::int64_t column = 0; column < weight.size(1); ++column) {
      sum += weight[row][column].item<double>() * x[column];
    }
    y.push_back(sum);
  }
  return y;
}

class MlpAgainstLoops : public ::testing::TestWithParam<Activation> {};

TEST_P(MlpAgainstLoops, ForwardIsTheProductsInARow) {
  Mlp mlp({.widths = {3, 5, 4, 2}, .activation = GetParam()}, at::kDouble);
  const at::Tensor x = at::rand({2, 3}, at::kDouble);
  const at::Tensor y = mlp.Forward(x);
  ASSERT_EQ(y.sizes(), (std::vector<std::int64_t>{2, 2}));
  const std::vector<at::Tensor> parameters = mlp.parameters();
  ASSERT_EQ(parameters.size(), 6u);
  for (std::int64_t sample = 0; sample < 2; ++sample) {
    std::vector<double> state;
    for (std::int64_t i = 0; i < 3; ++i) state.push_back(x[sample][i].item<double>());
    for (int layer = 0; layer < 3; ++layer) {
      if (layer > 0 && GetParam() == Activation::kRelu) {
        for (double& value : state) value = std::max(value, 0.0);
      }
      state = Linear(parameters[2 * layer], parameters[2 * layer + 1], state);
    }
    // Sums of at most 5 products of numbers below 1, three times: a few roundings each.
    for (std::int64_t i = 0; i < 2; ++i) EXPECT_NEAR(y[sample][i].item<double>(), state[i], 32 * 0x1p-53);
  }
}

INSTANTIATE_TEST_SUITE_P(Activations, MlpAgainstLoops,
                         ::testing::Values(Activation::kNone, Activation::kRelu));

TEST(Mlp, HasThePublishedNumberOfParameters) {
  const Mlp mlp({.widths = {128, 1024, 512, 256, 128, 128}}, at::kFloat);
  std::int64_t count = 0;
  for (const at::Tensor& parameter : mlp.parameters()) count += parameter.numel();
  EXPECT_EQ(count, 837632);  // 132096 + 524800 + 131328 + 32896 + 16512
}

TEST(Mlp, DescribesItselfAsPyTorchDoes) {
  EXPECT_EQ(Mlp({.widths = {8, 4, 2}}, at::kFloat).Description(),
            "Network(\n"
            "  (layers): Sequential(\n"
            "    (0): Linear(in_features=8, out_features=4, bias=True)\n"
            "    (1): Linear(in_features=4, out_features=2, bias=True)\n"
            "  )\n"
            ")");
}

// A stack of torch::nn::Linear drawn from the same seed.
TEST(Mlp, StartsFromPyTorchsNumbersOnEveryWay) {
  const MlpOptions options = {.widths = {7, 30, 4}};
  torch::manual_seed(3);
  const torch::nn::Linear first(7, 30), second(30, 4);
  const std::vector<at::Tensor> expected = {first->weight, first->bias, second->weight, second->bias};
  torch::manual_seed(3);
  const Mlp direct(options, at::kDouble);
  Mlp meta(options, at::TensorOptions(at::kMeta).dtype(at::kDouble));
  for (const at::Tensor& parameter : meta.parameters()) EXPECT_TRUE(parameter.is_meta());
  torch::manual_seed(3);
  const std::vector<models::ParameterUnit> units = meta.units();
  ASSERT_EQ(units.size(), 3u);
  EXPECT_TRUE(units[0].parameters.empty());
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    for (const models::ParameterSpec& parameter : units[unit].parameters) {
      models::Materialize(parameter.tensor, at::empty(parameter.tensor.sizes(), at::kDouble));
    }
    meta.ResetParameters(unit);
  }
  for (std::size_t j = 0; j < expected.size(); ++j) {
    EXPECT_TRUE(direct.parameters()[j].equal(expected[j].to(at::kDouble))) << j;
    EXPECT_TRUE(meta.parameters()[j].equal(direct.parameters()[j])) << j;
  }
  EXPECT_EQ(units[2].name, "layers.1");
  EXPECT_EQ(units[2].parameters[1].name, "layers.1.bias");
  EXPECT_TRUE(units[2].parameters[1].tensor.is_same(meta.parameters()[3]));
}

TEST(Mlp, BlocksAreTheLayers) {
  Mlp mlp({.widths = {3, 5, 4, 2}, .activation = Activation::kRelu}, at::kDouble);
  const at::Tensor x = at::rand({2, 3}, at::kDouble);
  std::vector<std::int64_t> widths;
  const models::BlockRunner run = [&](std::size_t block, const models::BlockState& input,
                                      const models::BlockContext& context) {
    EXPECT_EQ(block, widths.size());
    widths.push_back(input.hidden.size(1));
    return mlp.blocks()[block]->Forward(input, context);
  };
  EXPECT_TRUE(models::RunOutput(mlp, {.inputs = x, .targets = {}}, run).equal(mlp.Forward(x)));
  EXPECT_EQ(widths, (std::vector<std::int64_t>{3, 5, 4}));
}

TEST(Mlp, LossIsTheSumOfSquares) {
  Mlp mlp({.widths = {3, 2}}, at::kFloat);
  const models::Batch batch = {at::rand({4, 3}), at::rand({4, 2})};
  const models::LossSum loss = models::RunModel(mlp, batch);
  const at::Tensor y = mlp.Forward(batch.inputs);
  double sum = 0;
  for (std::int64_t i = 0; i < 8; ++i) {
    const double difference = y.flatten()[i].item<double>() - batch.targets.flatten()[i].item<double>();
    sum += difference * difference;
  }
  EXPECT_EQ(loss.count, 4);
  // Eight squares of numbers below 4, each with two roundings, and their sum.
  EXPECT_NEAR(loss.sum.item<double>(), sum, 10 * 8 * 16 * 0x1p-24);
}

}  // namespace
}  // namespace plait::mlp
