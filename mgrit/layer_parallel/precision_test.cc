// LayerParallel in float32 and bfloat16 against plain autograd in float64, with bounds from the unit
// roundoff.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "comm/testing/world.h"
#include "mgrit/layer_parallel/layer_parallel.h"
#include "mgrit/layer_parallel/testing/residual.h"

namespace plait::mgrit {
namespace {

using namespace testing;  // NOLINT: the parts of these tests

constexpr std::int64_t kSteps = 8;
constexpr int kFactor = 2;
constexpr double kFinalTime = 1.0;
constexpr double kDt = kFinalTime / kSteps;

double Norm(const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  return x.to(at::kDouble).norm().item<double>();
}

struct Result {
  at::Tensor output;
  std::vector<at::Tensor> gradients;  // by u_0, weight, bias
};

at::Tensor Input(at::ScalarType dtype) { return Numbers({3, kWidth}, 5).to(dtype).requires_grad_(true); }

Result Solve(const comm::Communicator& ranks, const std::shared_ptr<Residual>& block, int iterations) {
  LayerParallel net(ranks, block, kSteps, kFinalTime,
                    MakeLayerParallelOptions(2, kFactor, iterations, iterations));
  const at::Tensor u_0 = Input(block->weight.scalar_type());
  const at::Tensor output = net.Forward(u_0);
  return {output.detach(), Gradients(LossOf(output), {u_0, block->weight, block->bias})};
}

class PrecisionTest : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  static double UnitRoundoff() { return GetParam() == at::kFloat ? 0x1p-24 : 0x1p-8; }
  std::shared_ptr<Residual> block_ = std::make_shared<Residual>(1, GetParam(), /*scale=*/0.25);
};

// With U the largest norm of a state, L = |W| and u the unit roundoff: |F| <= L U + |b| =: A, and F is
// Lipschitz with L, so an error grows by at most G = exp(T L) to the end.
//   A step rounds u + dt F once (u U) and F three times (product, tanh, product with dt: 3 u dt A).
//   A C-interval's equation rounds R r + V and Phi_c(U) + g (2 u U) and small differences (counted as as much).
// So states are right to  e = G u (N (U + 3 dt A) + 4 (N / m) U).  Adjoints, of norm at most G |lambda_N|,
// have the same errors, and those of the Jacobians at states in error, |tanh''| < 1:
//   e_adjoint = G |lambda_N| (e / U + T L^2 e).
// The weight gradient is a sum of N terms dt (lambda tanh')^T u, each with three roundings, added with N roundings:
//   T (e_adjoint U + G |lambda_N| (e + L e U + (N + 3) u U)),  the bias's the same with 1 for u.
TEST_P(PrecisionTest, IsRightToTheRoundingOfItsSteps) {
  const Result actual = Solve(comm::testing::World(), block_, 8);
  const auto exact = std::make_shared<Residual>(1, at::kDouble);
  {
    const at::NoGradGuard no_grad;
    exact->weight.copy_(block_->weight);
    exact->bias.copy_(block_->bias);
  }
  const at::Tensor u_0 = Input(GetParam()).detach().to(at::kDouble).requires_grad_(true);
  double largest = Norm(u_0);
  at::Tensor u = u_0;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    u = exact->Forward({u}, {.dt = kDt}).hidden;
    largest = std::max(largest, Norm(u));
  }
  // LossOf's weights, rounded as the parallel run has them.
  const at::Tensor lambda = Numbers({3, kWidth}, 77).to(GetParam()).to(at::kDouble);
  const auto gradients = Gradients((u * lambda).sum(), {u_0, exact->weight, exact->bias});

  const double roundoff = UnitRoundoff(), lipschitz = Norm(exact->weight);
  const double growth = std::exp(kFinalTime * lipschitz);
  const double slope = lipschitz * largest + std::sqrt(3.0) * Norm(exact->bias);
  const double state_error =
      growth * roundoff * (kSteps * (largest + 3 * kDt * slope) + 4.0 * kSteps / kFactor * largest);
  const double adjoint = growth * Norm(lambda);
  const double adjoint_error =
      adjoint * (state_error / largest + kFinalTime * lipschitz * lipschitz * state_error);
  const double product_error = state_error + lipschitz * state_error * largest;
  const double weight_error =
      kFinalTime * (adjoint_error * largest + adjoint * (product_error + (kSteps + 3) * roundoff * largest));
  EXPECT_LE(Norm(actual.output.to(at::kDouble) - u), state_error);
  EXPECT_LE(Norm(actual.gradients[0].to(at::kDouble) - gradients[0]), adjoint_error);
  EXPECT_LE(Norm(actual.gradients[1].to(at::kDouble) - gradients[1]), weight_error);
  EXPECT_LE(Norm(actual.gradients[2].to(at::kDouble) - gradients[2]),
            weight_error * std::sqrt(3.0) / largest);
  // The bounds are not vacuous.
  EXPECT_LT(state_error, 0.5 * Norm(u));
}

TEST_P(PrecisionTest, IsBitwiseIdenticalForAnyNumberOfRanks) {
  for (const int iterations : {1, 2}) {
    const Result alone = Solve(comm::Communicator::Self(), block_, iterations);
    const Result together = Solve(comm::testing::World(), block_, iterations);
    EXPECT_TRUE(at::equal(together.output, alone.output));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(at::equal(together.gradients[i], alone.gradients[i])) << i;
    EXPECT_EQ(together.output.scalar_type(), GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PrecisionTest, ::testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& info) { return c10::toString(info.param); });

}  // namespace
}  // namespace plait::mgrit
