// Parameters that blocks of several steps share: gradients are summed over steps and ranks, or sharing is rejected.
#include <ATen/ops/equal.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <memory>
#include <string>
#include <vector>

#include "comm/testing/world.h"
#include "mgrit/layer_parallel/layer_parallel.h"
#include "mgrit/layer_parallel/testing/residual.h"

namespace plait::mgrit {
namespace {

using namespace testing;  // NOLINT: the parts of these tests

constexpr std::int64_t kSteps = 23;
constexpr double kFinalTime = 1.5;
constexpr double kTolerance = 1e-12;  // as in layer_parallel_test

LayerParallelOptions Converged() { return MakeLayerParallelOptions(3, 3, 30, 30); }
at::Tensor Input() { return Numbers({3, kWidth}, 5); }

// The gradients of `tied` by a backward pass, bitwise equal on all ranks.
std::vector<at::Tensor> GradientsOf(LayerParallel& net, const std::vector<at::Tensor>& tied) {
  for (const at::Tensor& parameter : net.Parameters()) parameter.mutable_grad().reset();
  LossOf(net.Forward(Input())).backward();
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : tied) gradients.push_back(parameter.grad().clone());
  return gradients;
}

std::string ErrorOfMaking(const LayerParallel::BlockFactory& make_block,
                          const LayerParallel::TiedParameters& tied) {
  try {
    LayerParallel(comm::testing::World(), make_block, kSteps, kFinalTime, Converged(), tied);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

TEST(TiedParameters, OneBlockForAllStepsThroughTheFactory) {
  const auto block = std::make_shared<Residual>(1);
  const auto block_of = [&](std::int64_t) { return block; };
  LayerParallel net(comm::testing::World(), block_of, kSteps, kFinalTime, Converged(),
                    {{"weight", block->weight}, {"bias", block->bias}});
  ASSERT_EQ(net.Parameters().size(), 2u);
  const auto actual = GradientsOf(net, {block->weight, block->bias});
  const auto expected =
      Gradients(LossOf(SerialForward(block_of, kSteps, kFinalTime, Input())), {block->weight, block->bias});
  for (int i = 0; i < 2; ++i) EXPECT_LT(RelativeError(actual[i], expected[i]), kTolerance);
}

// A bias shared by every third step, weights of each step: summed gradients for the bias, local ones for the weights;
// bitwise identical on any number of ranks, also on ranks whose steps do not use the bias.
TEST(TiedParameters, OfSomeStepsBesideParametersOfTheirOwn) {
  const at::Tensor bias = Numbers({kWidth}, 99).requires_grad_(true);
  std::vector<std::shared_ptr<Residual>> blocks;
  for (std::int64_t i = 0; i < kSteps; ++i) {
    blocks.push_back(
        std::make_shared<Residual>(10 + i, at::kDouble, 1.0, i % 3 == 0 && i < 12 ? bias : at::Tensor()));
  }
  const auto block_of = [&](std::int64_t step) { return blocks[step]; };
  LayerParallel alone(comm::Communicator::Self(), block_of, kSteps, kFinalTime, Converged(),
                      {{"bias", bias}});
  const at::Tensor expected_bits = GradientsOf(alone, {bias})[0];
  LayerParallel net(comm::testing::World(), block_of, kSteps, kFinalTime, Converged(), {{"bias", bias}});
  EXPECT_TRUE(at::equal(GradientsOf(net, {bias})[0], expected_bits));
  std::vector<at::Tensor> leaves = {bias};
  for (const auto& block : blocks) leaves.push_back(block->weight);
  const auto expected = Gradients(LossOf(SerialForward(block_of, kSteps, kFinalTime, Input())), leaves);
  EXPECT_LT(RelativeError(expected_bits, expected[0]), kTolerance);
  for (std::int64_t step = net.first_step(); step < net.last_step(); ++step) {
    EXPECT_LT(RelativeError(blocks[step]->weight.grad(), expected[1 + step]), kTolerance) << "step " << step;
  }
}

// A parameter that a block lists twice counts once.
TEST(TiedParameters, WithinOneBlock) {
  struct Twice : Residual {
    using Residual::Residual;
    std::vector<at::Tensor> Parameters() const override { return {weight, bias, weight}; }
  };
  const auto block = std::make_shared<Twice>(1);
  LayerParallel net(comm::testing::World(), block, kSteps, kFinalTime, Converged());
  const at::Tensor actual = GradientsOf(net, {block->weight})[0];
  const auto block_of = [&](std::int64_t) { return block; };
  const auto expected =
      Gradients(LossOf(SerialForward(block_of, kSteps, kFinalTime, Input())), {block->weight});
  EXPECT_LT(RelativeError(actual, expected[0]), kTolerance);
}

TEST(TiedParameters, FrozenOnesGetNoGradient) {
  const auto block = std::make_shared<Residual>(1);
  block->bias.requires_grad_(false);
  LayerParallel net(comm::testing::World(), block, kSteps, kFinalTime, Converged());
  const at::Tensor actual = GradientsOf(net, {block->weight})[0];
  EXPECT_FALSE(block->bias.grad().defined());
  const auto block_of = [&](std::int64_t) { return block; };
  const auto expected =
      Gradients(LossOf(SerialForward(block_of, kSteps, kFinalTime, Input())), {block->weight});
  EXPECT_LT(RelativeError(actual, expected[0]), kTolerance);
}

// On one rank alone: the error reaches all.
TEST(TiedParameters, ThatAreNotNamedAreRefused) {
  const auto block = std::make_shared<Residual>(1);
  const std::int64_t last_start = kSteps - 2;
  const auto make_block = [&](std::int64_t step) {
    return step >= last_start ? block : std::make_shared<Residual>(10 + step);
  };
  const std::string error = ErrorOfMaking(make_block, {{"bias", block->bias}});
  EXPECT_NE(error.find("step 22, number 0 of its list"), std::string::npos) << error;
  EXPECT_NE(error.find("name it among the tied"), std::string::npos) << error;
}

// The first and the last step's, which belong to different ranks: each would keep a part of the gradient.
TEST(TiedParameters, OfDifferentRanksThatAreNotNamedAreRefused) {
  const at::Tensor bias = Numbers({kWidth}, 99).requires_grad_(true);
  const auto make_block = [&](std::int64_t step) {
    const bool end = step == 0 || step == kSteps - 1;
    return std::make_shared<Residual>(10 + step, at::kDouble, 1.0, end ? bias : at::Tensor());
  };
  const std::string error = ErrorOfMaking(make_block, {});
  EXPECT_NE(error.find("name it among the tied"), std::string::npos) << error;
  EXPECT_EQ(ErrorOfMaking(make_block, {{"bias", bias}}), "");
}

// Different tensors with equal values are accepted.
TEST(TiedParameters, BlocksThatBeginAlikeAreNotTied) {
  EXPECT_EQ(ErrorOfMaking([](std::int64_t) { return std::make_shared<Residual>(1); }, {}), "");
}

TEST(TiedParameters, ThatRanksNameDifferentlyAreRefused) {
  const comm::Communicator& world = comm::testing::World();
  const at::Tensor bias = Numbers({kWidth}, 9).requires_grad_(true);
  const auto make_block = [&](std::int64_t step) { return std::make_shared<Residual>(10 + step); };
  const bool odd = world.rank() + 1 == world.size() && world.size() > 1;
  const std::string error = ErrorOfMaking(make_block, {{odd ? "bais" : "bias", bias}});
  EXPECT_EQ(error.find("different tied parameters") != std::string::npos, world.size() > 1) << error;
}

}  // namespace
}  // namespace plait::mgrit
