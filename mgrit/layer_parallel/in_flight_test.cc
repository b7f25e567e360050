// Several recorded passes of one network at a time against plain autograd, and calls that are rejected.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
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
// Rounding of 23 products of float64 matrices with condition about 1: far below.
constexpr double kTolerance = 1e-12;

std::string ErrorOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

class InFlightTest : public ::testing::Test {
 protected:
  at::Tensor Serial(const at::Tensor& u) {
    return SerialForward([&](std::int64_t) { return block_; }, kSteps, kFinalTime, u);
  }
  static at::Tensor Input(int which, std::int64_t batch = 3) {
    return Numbers({batch, kWidth}, 5 + which).requires_grad_(true);
  }
  std::vector<at::Tensor> Leaves(const at::Tensor& u_0) const { return {u_0, block_->weight, block_->bias}; }
  void ExpectSerialGradients(const std::vector<at::Tensor>& gradients, const at::Tensor& u_0) {
    const std::vector<at::Tensor> expected = Gradients(LossOf(Serial(u_0)), Leaves(u_0));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_LT(RelativeError(gradients[i], expected[i]), kTolerance) << "leaf " << i;
    }
  }

  std::shared_ptr<Residual> block_ = std::make_shared<Residual>(1);
  LayerParallel net_ = LayerParallel(comm::testing::World(), block_, kSteps, kFinalTime,
                                     MakeLayerParallelOptions(3, 3, 30, 30));
};

TEST_F(InFlightTest, TwoForwardsThenTwoBackwardsInEitherOrder) {
  for (const int first : {0, 1}) {
    for (const std::int64_t batch_of_second : {3, 5}) {
      const at::Tensor in[2] = {Input(0), Input(1, batch_of_second)};
      const at::Tensor out[2] = {net_.Forward(in[0]), net_.Forward(in[1])};
      for (const int which : {first, 1 - first}) {
        SCOPED_TRACE(which);
        ExpectSerialGradients(Gradients(LossOf(out[which]), Leaves(in[which])), in[which]);
      }
    }
  }
}

TEST_F(InFlightTest, OneBackwardThroughTwoForwards) {
  const at::Tensor in = Input(0);
  block_->weight.mutable_grad().reset();
  (LossOf(net_.Forward(in)) + LossOf(net_.Forward(Input(1)))).backward();
  const at::Tensor together = block_->weight.grad().clone();
  at::Tensor expected = Gradients(LossOf(Serial(in)) + LossOf(Serial(Input(1))), {block_->weight})[0];
  EXPECT_LT(RelativeError(together, expected), kTolerance);
}

TEST_F(InFlightTest, ThroughItselfTwice) {
  const at::Tensor in = Input(0);
  ExpectSerialGradients(Gradients(LossOf(net_.Forward(in)), Leaves(in)), in);
  const std::vector<at::Tensor> twice = Gradients(LossOf(net_.Forward(net_.Forward(in))), Leaves(in));
  const std::vector<at::Tensor> expected = Gradients(LossOf(Serial(Serial(in))), Leaves(in));
  for (int i = 0; i < 3; ++i) EXPECT_LT(RelativeError(twice[i], expected[i]), kTolerance) << "leaf " << i;
}

TEST_F(InFlightTest, AForwardWithoutGradientsBetweenForwardAndBackward) {
  const at::Tensor in = Input(0);
  const at::Tensor out = net_.Forward(in);
  {
    const at::NoGradGuard no_grad;
    EXPECT_LT(RelativeError(net_.Forward(Input(1)), Serial(Input(1))), kTolerance);
  }
  ExpectSerialGradients(Gradients(LossOf(out), Leaves(in)), in);
}

TEST_F(InFlightTest, AGraphThatIsDroppedLeavesNothingBehind) {
  const at::Tensor in = Input(0);
  for (int i = 0; i < 5; ++i) net_.Forward(Input(1 + i));
  ExpectSerialGradients(Gradients(LossOf(net_.Forward(in)), Leaves(in)), in);
}

TEST_F(InFlightTest, TwiceWithRetainGraphAndNotAThirdTime) {
  const at::Tensor in = Input(0);
  const at::Tensor loss = LossOf(net_.Forward(in));
  const auto gradients = [&](bool retain) { return torch::autograd::grad({loss}, Leaves(in), {}, retain); };
  ExpectSerialGradients(gradients(true), in);
  ExpectSerialGradients(gradients(false), in);
  EXPECT_NE(ErrorOf([&] { gradients(false); }).find("second time"), std::string::npos);
}

TEST_F(InFlightTest, IterationsSetBetweenForwardAndBackwardHoldFromTheNextForwardOn) {
  net_.set_iterations(2, 1);
  const at::Tensor in = Input(0);
  const std::vector<at::Tensor> before = Gradients(LossOf(net_.Forward(in)), Leaves(in));
  const at::Tensor out = net_.Forward(in);
  net_.set_iterations(30, 30);
  const std::vector<at::Tensor> between = Gradients(LossOf(out), Leaves(in));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(at::equal(between[i], before[i])) << "leaf " << i;
  ExpectSerialGradients(Gradients(LossOf(net_.Forward(in)), Leaves(in)), in);
}

TEST_F(InFlightTest, GradientsOfGradientsAreRefused) {
  const at::Tensor in = Input(0);
  const at::Tensor loss = LossOf(net_.Forward(in));
  const std::string error =
      ErrorOf([&] { torch::autograd::grad({loss}, {in}, {}, /*retain_graph=*/true, /*create_graph=*/true); });
  EXPECT_NE(error.find("create_graph"), std::string::npos) << error;
  ExpectSerialGradients(Gradients(loss, Leaves(in)), in);
}

TEST_F(InFlightTest, AParameterChangedBeforeTheBackwardIsRefused) {
  const at::Tensor in = Input(0);
  const at::Tensor loss = LossOf(net_.Forward(in));
  {
    const at::NoGradGuard no_grad;
    block_->weight.mul_(0.5);
  }
  const std::string error = ErrorOf([&] { Gradients(loss, {in}); });
  EXPECT_NE(error.find("modified by an inplace operation"), std::string::npos) << error;
}

// A rank whose own steps have no parameters takes part in the backward all the same.
TEST_F(InFlightTest, RanksWithoutParametersOfTheirOwn) {
  std::vector<std::shared_ptr<Residual>> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(std::make_shared<Residual>(10 + i));
  const auto block_of = [&](std::int64_t step) { return blocks[step]; };
  LayerParallel net(comm::testing::World(), block_of, 6, kFinalTime, MakeLayerParallelOptions(2, 3, 9, 9));
  const at::Tensor data = Numbers({3, kWidth}, 5);
  for (const auto& block : blocks) block->weight.mutable_grad().reset();
  LossOf(net.Forward(data)).backward();
  std::vector<at::Tensor> actual;
  for (const auto& block : blocks) actual.push_back(block->weight.grad());
  for (std::int64_t step = net.first_step(); step < net.last_step(); ++step) {
    const at::Tensor expected =
        Gradients(LossOf(SerialForward(block_of, 6, kFinalTime, data)), {blocks[step]->weight})[0];
    ASSERT_TRUE(actual[step].defined());
    EXPECT_LT(RelativeError(actual[step], expected), kTolerance) << "step " << step;
  }
}

}  // namespace
}  // namespace plait::mgrit
