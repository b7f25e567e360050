// LayerParallel against plain autograd through the same blocks.
#include "mgrit/layer_parallel/layer_parallel.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <memory>
#include <vector>

#include "comm/testing/world.h"
#include "mgrit/layer_parallel/testing/residual.h"

namespace plait::mgrit {
namespace {

using namespace testing;  // NOLINT: the parts of these tests

constexpr std::int64_t kBatch = 3;
constexpr double kFinalTime = 1.5;

struct Result {
  at::Tensor output;
  at::Tensor input_gradient;
  std::vector<at::Tensor> gradients;
};

Result Serial(const std::vector<std::shared_ptr<Residual>>& blocks) {
  Result result;
  at::Tensor u_0 = Numbers({kBatch, kWidth}, 5).requires_grad_(true);
  const at::Tensor u = SerialForward([&](std::int64_t step) { return blocks[step]; },
                                     static_cast<std::int64_t>(blocks.size()), kFinalTime, u_0);
  std::vector<at::Tensor> leaves = {u_0};
  for (const auto& block : blocks) {
    if (block != blocks[0] && block->weight.is_same(blocks[0]->weight)) continue;
    for (const auto& parameter : block->Parameters()) leaves.push_back(parameter);
    if (blocks.size() > 1 && blocks[0] == blocks[1]) break;
  }
  auto gradients = Gradients(LossOf(u), leaves);
  result.output = u.detach();
  result.input_gradient = gradients[0];
  result.gradients.assign(gradients.begin() + 1, gradients.end());
  return result;
}

Result Parallel(LayerParallel& net) {
  Result result;
  at::Tensor u_0 = Numbers({kBatch, kWidth}, 5).requires_grad_(true);
  at::Tensor u = net.Forward(u_0);
  std::vector<at::Tensor> leaves = net.Parameters();
  leaves.push_back(u_0);
  auto gradients = Gradients(LossOf(u), leaves);
  result.output = u.detach();
  result.input_gradient = gradients.back();
  gradients.pop_back();
  result.gradients = gradients;
  return result;
}

LayerParallelOptions Converged(int levels, int cfactor) {
  LayerParallelOptions options = MakeLayerParallelOptions(levels, cfactor, 30, 30);
  return options;
}

struct Shape {
  std::int64_t steps;
  int levels;
  int cfactor;
};

class LayerParallelShapes : public ::testing::TestWithParam<Shape> {};

// Rounding of `steps` products of float64 matrices with condition about 1: far below 1e-12.
TEST_P(LayerParallelShapes, ConvergedSharedBlockEqualsPlainAutograd) {
  const Shape shape = GetParam();
  auto block = std::make_shared<Residual>(1);
  const Result serial = Serial(std::vector<std::shared_ptr<Residual>>(shape.steps, block));
  LayerParallel net(comm::testing::World(), block, shape.steps, kFinalTime,
                    Converged(shape.levels, shape.cfactor));
  const Result parallel = Parallel(net);
  EXPECT_LT(RelativeError(parallel.output, serial.output), 1e-12);
  EXPECT_LT(RelativeError(parallel.input_gradient, serial.input_gradient), 1e-12);
  ASSERT_EQ(parallel.gradients.size(), serial.gradients.size());
  for (std::size_t p = 0; p < serial.gradients.size(); ++p) {
    EXPECT_LT(RelativeError(parallel.gradients[p], serial.gradients[p]), 1e-12) << "parameter " << p;
  }
}

TEST_P(LayerParallelShapes, ConvergedBlocksOfTheirOwnEqualPlainAutograd) {
  const Shape shape = GetParam();
  std::vector<std::shared_ptr<Residual>> blocks;
  for (std::int64_t i = 0; i < shape.steps; ++i) blocks.push_back(std::make_shared<Residual>(10 + i));
  const Result serial = Serial(blocks);
  LayerParallel net(
      comm::testing::World(), [&](std::int64_t step) { return blocks[step]; }, shape.steps, kFinalTime,
      Converged(shape.levels, shape.cfactor));
  const Result parallel = Parallel(net);
  EXPECT_LT(RelativeError(parallel.output, serial.output), 1e-12);
  EXPECT_LT(RelativeError(parallel.input_gradient, serial.input_gradient), 1e-12);
  ASSERT_EQ(static_cast<std::int64_t>(parallel.gradients.size()), 2 * (net.last_step() - net.first_step()));
  for (std::int64_t step = net.first_step(); step < net.last_step(); ++step) {
    for (int p = 0; p < 2; ++p) {
      EXPECT_LT(RelativeError(parallel.gradients[2 * (step - net.first_step()) + p],
                              serial.gradients[2 * step + p]),
                1e-12)
          << "step " << step << " parameter " << p;
    }
  }
}

TEST_P(LayerParallelShapes, FewIterationsGiveTheSameBitsOnAnyNumberOfRanks) {
  const Shape shape = GetParam();
  auto block = std::make_shared<Residual>(1);
  LayerParallelOptions options = MakeLayerParallelOptions(shape.levels, shape.cfactor, 2, 1);
  LayerParallel alone(comm::Communicator::Self(), block, shape.steps, kFinalTime, options);
  LayerParallel net(comm::testing::World(), block, shape.steps, kFinalTime, options);
  const Result expected = Parallel(alone);
  const Result actual = Parallel(net);
  EXPECT_TRUE(at::equal(actual.output, expected.output));
  EXPECT_TRUE(at::equal(actual.input_gradient, expected.input_gradient));
  for (std::size_t p = 0; p < expected.gradients.size(); ++p) {
    EXPECT_TRUE(at::equal(actual.gradients[p], expected.gradients[p])) << "parameter " << p;
  }
  const auto residuals = [](const LayerParallel& solver) { return solver.last_forward().residual_norms; };
  EXPECT_EQ(residuals(net).back(), residuals(alone).back());
}

TEST_P(LayerParallelShapes, InferenceEndsWhereTrainingEnds) {
  const Shape shape = GetParam();
  auto block = std::make_shared<Residual>(1);
  LayerParallel net(comm::testing::World(), block, shape.steps, kFinalTime,
                    MakeLayerParallelOptions(shape.levels, shape.cfactor, 2, 1));
  const at::Tensor trained = Parallel(net).output;
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(at::equal(net.Forward(Numbers({kBatch, kWidth}, 5)), trained));
}

INSTANTIATE_TEST_SUITE_P(Shapes, LayerParallelShapes,
                         ::testing::Values(Shape{16, 2, 4}, Shape{24, 3, 2}, Shape{23, 3, 3}, Shape{5, 2, 2},
                                           Shape{32, 3, 4}, Shape{7, 1, 2}));

TEST(LayerParallel, OptionsThatDoNotFitAreNamed) {
  const absl::Status status = LayerParallel::Check(MakeLayerParallelOptions(4, 4, 1, 1), 32);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("at most 3 levels"), std::string::npos) << status.message();
}

TEST(LayerParallel, OptionsThatNetworksDoNotHaveAreRefused) {
  for (Options LayerParallelOptions::*direction :
       {&LayerParallelOptions::forward, &LayerParallelOptions::backward}) {
    LayerParallelOptions options = MakeLayerParallelOptions(2, 4, 1, 1);
    ASSERT_TRUE(LayerParallel::Check(options, 32).ok());
    (options.*direction).periodic = true;
    EXPECT_NE(LayerParallel::Check(options, 32).message().find("periodic"), std::string::npos);
    (options.*direction).periodic = false;
    (options.*direction).delta_rank = 2;
    EXPECT_NE(LayerParallel::Check(options, 32).message().find("delta_rank is 2"), std::string::npos);
  }
}

TEST(LayerParallel, AnotherBatchSizeAndAnotherPassAreAsGoodAsTheFirst) {
  auto block = std::make_shared<Residual>(1);
  LayerParallel net(comm::testing::World(), block, 16, kFinalTime, Converged(2, 4));
  const Result first = Parallel(net);
  const at::Tensor other = Numbers({2 * kBatch, kWidth}, 6).requires_grad_(true);
  net.Forward(other).sum().backward();
  const Result again = Parallel(net);
  EXPECT_TRUE(at::equal(first.output, again.output));
  for (std::size_t p = 0; p < first.gradients.size(); ++p) {
    EXPECT_TRUE(at::equal(first.gradients[p], again.gradients[p]));
  }
}

}  // namespace
}  // namespace plait::mgrit
