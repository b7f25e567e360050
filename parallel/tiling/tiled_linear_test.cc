// Tiles against torch::nn::Linear's arithmetic, and under an engine that shards them.
#include "parallel/tiling/tiled_linear.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "comm/device_mesh.h"
#include "comm/testing/world.h"
#include "parallel/sharding/data_parallel.h"

namespace plait::parallel {
namespace {

constexpr double kEps = 0x1p-53;
constexpr std::int64_t kBatch = 6, kIn = 13, kOut = 11;

struct Layer {
  at::Tensor weight, bias, x, y_gradient;
};

Layer Whole() {
  torch::manual_seed(3);
  return {at::randn({kOut, kIn}, at::kDouble).requires_grad_(true),
          at::randn({kOut}, at::kDouble).requires_grad_(true),
          at::randn({kBatch, kIn}, at::kDouble).requires_grad_(true), at::randn({kBatch, kOut}, at::kDouble)};
}

// |actual - expected| <= bound, element by element.
void ExpectWithin(const at::Tensor& actual, const at::Tensor& expected, const at::Tensor& bound,
                  const std::string& what) {
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  EXPECT_TRUE((actual - expected).abs().le(bound).all().item<bool>()) << what;
}

at::Tensor Abs(const at::Tensor& tensor) { return tensor.detach().abs(); }

// A sum of n products, in any order, is within n eps sum |products| of the exact one; two sums differ by at
// most twice that.
void ExpectEqualToWhole(const TiledLinear& tiled, const Layer& whole, const at::Tensor& y,
                        const at::Tensor& x_gradient) {
  const at::Tensor expected = at::linear(whole.x, whole.weight, whole.bias);
  expected.backward(whole.y_gradient);
  const at::Tensor w = Abs(whole.weight), x = Abs(whole.x), g = Abs(whole.y_gradient);
  ExpectWithin(y, expected, 2 * (kIn + 1) * kEps * (at::mm(x, w.t()) + Abs(whole.bias)), "output");
  ExpectWithin(x_gradient, whole.x.grad(), 2 * kOut * kEps * at::mm(g, w), "input's gradient");
  std::int64_t row = 0;
  const at::Tensor weight_bound = 2 * kBatch * kEps * at::mm(g.t(), x);
  const at::Tensor bias_bound = 2 * kBatch * kEps * g.sum(0);
  std::int64_t column = 0;
  for (const models::ParameterUnit& unit : tiled.units()) {
    const at::Tensor& weight = unit.parameters[0].tensor;
    const auto part = [&](const at::Tensor& of) {
      return of.narrow(0, row, weight.size(0)).narrow(1, column, weight.size(1));
    };
    ExpectWithin(weight.grad(), part(whole.weight.grad()), part(weight_bound), unit.name);
    if (unit.parameters.size() > 1) {
      const auto rows = [&](const at::Tensor& of) { return of.narrow(0, row, weight.size(0)); };
      ExpectWithin(unit.parameters[1].tensor.grad(), rows(whole.bias.grad()), rows(bias_bound), "bias");
    }
    column += weight.size(1);
    if (column == kIn) row += weight.size(0), column = 0;
  }
}

TEST(TiledLinear, EqualsTheLayerWithoutTiles) {
  for (const auto& [in_tiles, out_tiles] : {std::pair{1, 1}, {1, 3}, {4, 1}, {3, 2}, {13, 11}}) {
    const Layer whole = Whole();
    TiledLinear tiled({.in = kIn, .out = kOut, .in_tiles = in_tiles, .out_tiles = out_tiles}, at::kDouble);
    tiled.Load(whole.weight, whole.bias);
    EXPECT_TRUE(tiled.Weight().equal(whole.weight));
    EXPECT_TRUE(tiled.Bias().equal(whole.bias));
    const at::Tensor x = whole.x.detach().clone().requires_grad_(true);
    const at::Tensor y = tiled.Forward(x);
    y.backward(whole.y_gradient);
    ExpectEqualToWhole(tiled, whole, y, x.grad());
  }
}

TEST(TiledLinear, TakesInputsOfAnyRank) {
  const TiledLinear tiled({.in = 5, .out = 4, .in_tiles = 2, .out_tiles = 2, .bias = false}, at::kDouble);
  const at::Tensor x = at::randn({2, 3, 5}, at::kDouble);
  const at::Tensor y = tiled.Forward(x);
  ASSERT_EQ(y.sizes(), (std::vector<std::int64_t>{2, 3, 4}));
  const at::Tensor expected = at::linear(x, tiled.Weight());
  EXPECT_LE((y - expected).abs().max().item<double>(), 2 * 5 * kEps * Abs(x).sum(-1).max().item<double>());
  EXPECT_FALSE(tiled.Bias().defined());
  const at::Tensor vector = tiled.Forward(x[0][0]);
  EXPECT_EQ(vector.sizes(), (std::vector<std::int64_t>{4}));
}

TEST(TiledLinearDeathTest, LoadsABiasOfItsOwnSizeOnly) {
  const TiledLinear tiled({.in = 5, .out = 4, .in_tiles = 2, .out_tiles = 2}, at::kDouble);
  const TiledLinear bare({.in = 5, .out = 4, .bias = false}, at::kDouble);
  const at::Tensor weight = at::randn({4, 5}, at::kDouble), bias = at::randn({4}, at::kDouble);
  bare.Load(weight, {});
  EXPECT_DEATH(tiled.Load(weight, at::randn({8}, at::kDouble)), "bias of shape \\[8\\]; expected \\[4\\]");
  EXPECT_DEATH(tiled.Load(weight, {}), "no bias; expected \\[4\\]");
  EXPECT_DEATH(bare.Load(weight, bias), "bias of shape \\[4\\]; expected none");
}

TEST(TiledLinear, IsAnOrdinaryModule) {
  const TiledLinear tiled({.in = 5, .out = 4, .in_tiles = 2, .out_tiles = 2}, at::kFloat);
  std::vector<std::string> of_module, of_units;
  for (const auto& item : tiled.module()->named_parameters()) of_module.push_back(item.key());
  for (const models::ParameterUnit& unit : tiled.units()) {
    for (const models::ParameterSpec& p : unit.parameters) of_units.push_back(p.name);
  }
  std::sort(of_module.begin(), of_module.end());
  std::sort(of_units.begin(), of_units.end());
  EXPECT_EQ(of_module, of_units);
  EXPECT_EQ(of_units, (std::vector<std::string>{"tile.0.0.weight", "tile.0.1.weight", "tile.0.bias",
                                                "tile.1.0.weight", "tile.1.1.weight", "tile.1.bias"}));
}

TEST(TiledLinear, DrawsTheDistributionOfTheWholeLayer) {
  torch::manual_seed(1);
  const TiledLinear tiled({.in = 400, .out = 100, .in_tiles = 4, .out_tiles = 2}, at::kDouble);
  const at::Tensor weight = tiled.Weight();
  // Uniform within 1 / sqrt(400) of zero: 40,000 draws, standard deviation 0.05 / sqrt(3), whose estimate is
  // off by less than 5 / sqrt(2 n) of itself but once in a million times.
  EXPECT_LE(weight.abs().max().item<double>(), 0.05);
  EXPECT_NEAR(weight.std().item<double>(), 0.05 / std::sqrt(3), 0.05 / std::sqrt(3) * 5 / std::sqrt(8e4));
}

TEST(TiledLinear, TilesRunOneAfterTheOther) {
  TiledLinear tiled({.in = 6, .out = 6, .in_tiles = 2, .out_tiles = 3, .first_block = 10}, at::kDouble);
  std::vector<std::size_t> blocks;
  tiled.set_tile_runner(
      [&](std::size_t block, const models::BlockForward& forward, const models::BlockState& x) {
        blocks.push_back(block);
        EXPECT_EQ(x.hidden.size(-1), 3);
        return forward(x);
      });
  tiled.Forward(at::randn({1, 6}, at::kDouble));
  EXPECT_EQ(blocks, (std::vector<std::size_t>{10, 11, 12, 13, 14, 15}));
}

// Under an engine that holds one tile at a time: every rank has the same samples and a fraction of the loss.
TEST(TiledLinear, ShardedEqualsTheLayerWithoutTiles) {
  const comm::Communicator& world = comm::testing::World();
  const Layer whole = Whole();
  TiledLinear tiled({.in = kIn, .out = kOut, .in_tiles = 3, .out_tiles = 2}, at::kDouble);
  tiled.Load(whole.weight, whole.bias);
  auto dp = DataParallel::Create(*comm::DeviceMesh::Create(world, {{"dp_shard", world.size()}}),
                                 tiled.units(), {.strategy = Strategy::kFsdp});
  ASSERT_TRUE(dp.ok()) << dp.status();
  tiled.set_tile_runner([&](std::size_t block, const models::BlockForward& forward,
                            const models::BlockState& x) { return (*dp)->Run(block, forward, x); });
  const at::Tensor x = whole.x.detach().clone().requires_grad_(true);
  at::Tensor y;
  const at::Tensor loss = (*dp)->Forward([&] {
    y = tiled.Forward(x);
    return (y * whole.y_gradient).sum() / world.size();
  });
  (*dp)->Backward(loss);
  const at::Tensor expected = at::linear(whole.x, whole.weight, whole.bias);
  (expected * whole.y_gradient).sum().backward();
  const at::Tensor w = Abs(whole.weight), x_abs = Abs(whole.x), g = Abs(whole.y_gradient);
  ExpectWithin(y, expected, 2 * (kIn + 1) * kEps * (at::mm(x_abs, w.t()) + Abs(whole.bias)), "output");
  // The share of the loss and the sum over ranks are two roundings more.
  ExpectWithin(x.grad() * world.size(), whole.x.grad(), 2 * (kOut + 2) * kEps * at::mm(g, w), "input");
  const double norm = std::sqrt(whole.weight.grad().square().sum().item<double>() +
                                whole.bias.grad().square().sum().item<double>());
  const at::Tensor weight_bound = at::mm(g.t(), x_abs), bias_bound = g.sum(0);
  const double bound =
      std::sqrt(weight_bound.square().sum().item<double>() + bias_bound.square().sum().item<double>());
  EXPECT_NEAR((*dp)->GradientNorm(), norm, 2 * (kBatch + world.size() + 2) * kEps * bound);
}

}  // namespace
}  // namespace plait::parallel
