// Several recorded passes through one LayerParallel, and what is not supported, against plain autograd.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/tanh.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <memory>
#include <string>
#include <vector>

#include "comm/testing/world.h"
#include "mgrit/layer_parallel/layer_parallel.h"

namespace plait::mgrit {
namespace {

constexpr std::int64_t kWidth = 4;
constexpr std::int64_t kSteps = 23;
constexpr double kFinalTime = 1.5;

at::Tensor Numbers(std::vector<std::int64_t> sizes, std::uint64_t seed) {
  at::Tensor tensor = at::empty(sizes, at::kDouble);
  double* data = tensor.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    data[i] = static_cast<double>(seed >> 11) * 0x1p-52 - 1.0;
  }
  return tensor;
}

struct Residual : Block {
  explicit Residual(std::uint64_t seed, at::Tensor shared_bias = {})
      : weight(Numbers({kWidth, kWidth}, seed).requires_grad_(true)),
        bias(shared_bias.defined() ? shared_bias : Numbers({kWidth}, seed + 1000).requires_grad_(true)) {}
  at::Tensor Forward(const at::Tensor& u, double dt) override {
    return u + dt * at::tanh(at::addmm(bias, u, weight.t()));
  }
  std::vector<at::Tensor> Parameters() override { return {weight, bias}; }
  at::Tensor weight;
  at::Tensor bias;
};

at::Tensor SerialForward(Block& block, at::Tensor u) {
  for (std::int64_t i = 0; i < kSteps; ++i) u = block.Forward(u, kFinalTime / kSteps);
  return u;
}
double RelativeError(const at::Tensor& x, const at::Tensor& exact) {
  const at::NoGradGuard no_grad;
  return (x - exact).norm().item<double>() / exact.norm().item<double>();
}

at::Tensor Input(int which, std::int64_t batch = 3) {
  return Numbers({batch, kWidth}, 5 + which).requires_grad_(true);
}
at::Tensor LossOf(const at::Tensor& u) { return (u * Numbers({u.size(0), kWidth}, 77)).sum(); }
std::vector<at::Tensor> Grad(const at::Tensor& loss, const std::vector<at::Tensor>& leaves) {
  return torch::autograd::grad({loss}, leaves);
}

TEST(InFlight, TwoForwardsThenTwoBackwardsInEitherOrder) {
  auto block = std::make_shared<Residual>(1);
  LayerParallel net(comm::testing::World(), block, kSteps, kFinalTime, MakeLayerParallelOptions(3, 3, 30, 30));
  for (const bool first_goes_first : {true, false}) {
    const at::Tensor in[2] = {Input(0), Input(1)};
    const at::Tensor out[2] = {net.Forward(in[0]), net.Forward(in[1])};
    for (const int which : {first_goes_first ? 0 : 1, first_goes_first ? 1 : 0}) {
      const std::vector<at::Tensor> leaves = {in[which], block->weight, block->bias};
      const auto expected = Grad(LossOf(SerialForward(*block, in[which])), leaves);
      const auto actual = Grad(LossOf(out[which]), leaves);
      for (int i = 0; i < 3; ++i) EXPECT_LT(RelativeError(actual[i], expected[i]), 1e-12) << which << " " << i;
    }
  }
}

TEST(InFlight, ANoGradForwardBetweenForwardAndBackward) {
  auto block = std::make_shared<Residual>(1);
  LayerParallel net(comm::testing::World(), block, kSteps, kFinalTime, MakeLayerParallelOptions(3, 3, 30, 30));
  const at::Tensor in = Input(0);
  const at::Tensor out = net.Forward(in);
  {
    const at::NoGradGuard no_grad;
    EXPECT_LT(RelativeError(net.Forward(Input(1)), SerialForward(*block, Input(1))), 1e-12);
  }
  const auto expected = Grad(LossOf(SerialForward(*block, in)), {in, block->weight});
  const auto actual = Grad(LossOf(out), {in, block->weight});
  for (int i = 0; i < 2; ++i) EXPECT_LT(RelativeError(actual[i], expected[i]), 1e-12);
}

TEST(InFlight, SetIterationsBetweenForwardAndBackward) {
  auto block = std::make_shared<Residual>(1);
  LayerParallel net(comm::testing::World(), block, kSteps, kFinalTime, MakeLayerParallelOptions(3, 3, 2, 1));
  const at::Tensor in = Input(0);
  const auto before = Grad(LossOf(net.Forward(in)), {in, block->weight});
  const at::Tensor out = net.Forward(in);
  net.set_iterations(30, 30);
  const auto between = Grad(LossOf(out), {in, block->weight});
  EXPECT_TRUE(at::equal(between[0], before[0]) && at::equal(between[1], before[1]));
  const auto after = Grad(LossOf(net.Forward(in)), {in, block->weight});
  const auto expected = Grad(LossOf(SerialForward(*block, in)), {in, block->weight});
  for (int i = 0; i < 2; ++i) EXPECT_LT(RelativeError(after[i], expected[i]), 1e-12);
}

TEST(InFlight, GradientsOfGradientsAreAnError) {
  auto block = std::make_shared<Residual>(1);
  LayerParallel net(comm::testing::World(), block, kSteps, kFinalTime, MakeLayerParallelOptions(2, 3, 3, 3));
  const at::Tensor in = Input(0);
  const at::Tensor loss = LossOf(net.Forward(in));
  std::string error;
  try {
    torch::autograd::grad({loss}, {in}, {}, /*retain_graph=*/true, /*create_graph=*/true);
  } catch (const c10::Error& e) {
    error = e.what_without_backtrace();
  }
  EXPECT_NE(error.find("create_graph"), std::string::npos) << error;
}

TEST(Shared, OneBlockThroughTheFactory) {
  auto block = std::make_shared<Residual>(1);
  LayerParallel net(
      comm::testing::World(), [&](std::int64_t) { return block; }, kSteps, kFinalTime,
      MakeLayerParallelOptions(3, 3, 30, 30));
  const at::Tensor in = Input(0);
  const auto expected = Grad(LossOf(SerialForward(*block, in)), {block->weight, block->bias});
  block->weight.mutable_grad().reset();
  LossOf(net.Forward(in)).backward();
  EXPECT_LT(RelativeError(block->weight.grad(), expected[0]), 1e-12)
      << block->weight.grad().norm().item<double>() << " " << expected[0].norm().item<double>();
}

}  // namespace
}  // namespace plait::mgrit
