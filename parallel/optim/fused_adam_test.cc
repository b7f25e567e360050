// The fused kernel against LibTorch's optimizer of many small operations, in float64.
#include "parallel/optim/fused_adam.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>

#include <memory>

namespace plait::parallel {
namespace {

std::vector<at::Tensor> Parameters() {
  std::vector<at::Tensor> parameters;
  for (const std::int64_t size : {1, 7, 64}) {
    parameters.push_back(at::rand({size, 3}, at::kDouble).requires_grad_(true));
  }
  return parameters;
}

std::vector<at::Tensor> CopiesOf(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& tensor : tensors) copies.push_back(tensor.detach().clone().requires_grad_(true));
  return copies;
}

std::unique_ptr<torch::optim::Optimizer> Reference(const std::vector<at::Tensor>& parameters,
                                                   bool decoupled) {
  if (decoupled) {
    return std::make_unique<torch::optim::AdamW>(
        parameters, torch::optim::AdamWOptions(0.01).betas({0.8, 0.95}).weight_decay(0.1));
  }
  return std::make_unique<torch::optim::Adam>(
      parameters, torch::optim::AdamOptions(0.01).betas({0.8, 0.95}).weight_decay(0.1));
}

class FusedAdamKinds : public ::testing::TestWithParam<bool> {};

TEST_P(FusedAdamKinds, StepsAsLibTorchDoes) {
  const std::vector<at::Tensor> own = Parameters(), other = CopiesOf(own);
  FusedAdam adam(
      own,
      {.lr = 0.01, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1, .decoupled_weight_decay = GetParam()});
  const auto reference = Reference(other, GetParam());
  constexpr int kSteps = 20;
  for (int step = 0; step < kSteps; ++step) {
    for (std::size_t i = 0; i < own.size(); ++i) {
      own[i].mutable_grad() = at::rand(own[i].sizes(), at::kDouble) - 0.5;
      other[i].mutable_grad() = own[i].grad().clone();
    }
    if (step % 2 == 0) {
      adam.Step();
    } else {  // in parts, in any order
      adam.BeginStep();
      adam.Apply({2});
      adam.Apply({0, 1});
    }
    reference->step();
  }
  // A step changes a parameter below 1 by about lr; its formula is about ten roundings, and the moments' own
  // are forgotten. The square root of a small second moment magnifies them: 100 roundings a step.
  for (std::size_t i = 0; i < own.size(); ++i) {
    EXPECT_LT((own[i] - other[i]).abs().max().item<double>(), kSteps * 100 * 0x1p-53);
  }
  EXPECT_EQ(adam.steps(), kSteps);
}

INSTANTIATE_TEST_SUITE_P(CoupledAndDecoupled, FusedAdamKinds, ::testing::Bool());

// Algorithm 1 by hand: the first step is lr * g / (|g| + epsilon).
TEST(FusedAdam, FirstStepIsTheSignOfTheGradient) {
  at::Tensor parameter = at::rand({4}, at::kDouble).requires_grad_(true);
  const at::Tensor before = parameter.detach().clone();
  parameter.mutable_grad() = at::rand({4}, at::kDouble) + 0.5;
  FusedAdam({parameter}, {.lr = 0.125}).Step();
  EXPECT_LT((before - 0.125 - parameter.detach()).abs().max().item<double>(), 1e-7);  // epsilon / |g| * lr
}

TEST(FusedAdam, LeavesParametersWithoutGradientAlone) {
  const std::vector<at::Tensor> parameters = Parameters();
  const at::Tensor before = parameters[1].detach().clone();
  FusedAdam adam(parameters, {});
  parameters[0].mutable_grad() = at::rand(parameters[0].sizes(), at::kDouble);
  adam.Step();
  EXPECT_TRUE(at::equal(parameters[1].detach(), before));
  adam.ClearGradients();
  EXPECT_FALSE(parameters[0].grad().defined());
}

}  // namespace
}  // namespace plait::parallel
