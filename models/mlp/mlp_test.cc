// The perceptron against products written out in float64.
#include "models/mlp/mlp.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

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
  const Mlp mlp({.widths = {3, 5, 4, 2}, .activation = GetParam()}, at::kDouble);
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

}  // namespace
}  // namespace plait::mlp
