// A pass that continues a kept one by one iteration, and the estimate of the bias by the difference of their gradients:
// against closed forms of two-level error propagation, and against plain autograd.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "comm/testing/world.h"
#include "mgrit/layer_parallel/layer_parallel.h"
#include "mgrit/layer_parallel/testing/residual.h"

namespace plait::mgrit {
namespace {

using namespace testing;  // NOLINT: the parts of these tests

constexpr std::int64_t kSteps = 32;
constexpr int kFactor = 4;
constexpr int kIntervals = kSteps / kFactor;
constexpr double kFinalTime = 2;
constexpr double kStep = kFinalTime / kSteps;
const std::vector<double> kRates = {-2, -0.7, 0.4};
const std::vector<double> kInput = {1, -1.5, 0.8};

// u + dt (a u + b_i), b = 0: the gradient with respect to b_i is dt lambda_{i+1}. Counts its calls and VJPs.
struct Modes : models::Block {
  models::BlockState Forward(const models::BlockState& in, const models::BlockContext& context) override {
    ++calls;
    const at::Tensor rates = at::tensor(kRates, at::kDouble);
    at::Tensor out = in.hidden + context.dt * (rates * in.hidden + sources[context.step]);
    if (out.requires_grad()) out.register_hook([this](const at::Tensor&) { ++adjoints; });
    return {out};
  }
  std::vector<at::Tensor> Parameters() const override { return {sources}; }

  at::Tensor sources =
      at::zeros({kSteps, static_cast<std::int64_t>(kRates.size())}, at::kDouble).requires_grad_(true);
  std::int64_t calls = 0, adjoints = 0;
};

double Fine(double rate) { return 1 + kStep * rate; }
double Interval(double rate) { return std::pow(Fine(rate), kFactor); }
double Coarse(double rate) { return 1 + kFactor * kStep * rate; }

// States at the C-points 0 ... N after another iteration with F-relaxation; exactly they are begin lambda^{m j}.
// (Dobrev, Kolev, Petersson, Schroder: SIAM J. Sci. Comput. 39, 2017, Lemma 3.1.)
std::vector<double> Iterated(double rate, double begin, const std::vector<double>& states) {
  std::vector<double> next;
  for (int i = 0; i <= kIntervals; ++i) {
    double error = 0;
    for (int j = 1; j < i; ++j) {
      const double before = states[j] - begin * std::pow(Interval(rate), j);
      error += (Interval(rate) - Coarse(rate)) * std::pow(Coarse(rate), i - 1 - j) * before;
    }
    next.push_back(begin * std::pow(Interval(rate), i) + error);
  }
  return next;
}

// After `iterations`, the first of which is a sweep on the coarse level.
std::vector<double> Solved(double rate, double begin, int iterations) {
  std::vector<double> states;
  for (int i = 0; i <= kIntervals; ++i) states.push_back(begin * std::pow(Coarse(rate), i));
  for (int k = 1; k < iterations; ++k) states = Iterated(rate, begin, states);
  return states;
}

using Loss = std::function<at::Tensor(const at::Tensor&)>;
at::Tensor Linear(const at::Tensor& u) { return (u * Numbers(u.sizes().vec(), 77)).sum(); }
at::Tensor Square(const at::Tensor& u) { return 0.5 * (u * u).sum(); }

class ContinuedPassTest : public ::testing::Test {
 protected:
  at::Tensor Gradient(const Loss& loss, double scale = 1) {
    return Gradients(loss(net_.Forward(scale * at::tensor(kInput, at::kDouble))), {block_->sources})[0];
  }
  static at::Tensor Exact(const Loss& loss) {
    auto block = std::make_shared<Modes>();
    const auto block_of = [&](std::int64_t) { return block; };
    return Gradients(loss(SerialForward(block_of, kSteps, kFinalTime, at::tensor(kInput, at::kDouble))),
                     {block->sources})[0];
  }
  std::int64_t OverRanks(std::int64_t count) {
    comm::testing::World().AllReduce(comm::BufferOf(absl::MakeSpan(&count, 1)));
    return count;
  }

  std::shared_ptr<Modes> block_ = std::make_shared<Modes>();
  LayerParallel net_ = LayerParallel(comm::testing::World(), block_, kSteps, kFinalTime,
                                     MakeLayerParallelOptions(2, kFactor, 2, 1));
};

double Norm(const at::Tensor& x) { return x.norm().item<double>(); }

// Checks the gradients with respect to all b_i: the adjoint of a C-point of the adjoint grid, times a power of
// lambda.
void ExpectGradient(const at::Tensor& gradient, const std::vector<std::vector<double>>& adjoints) {
  for (std::size_t k = 0; k < kRates.size(); ++k) {
    for (std::int64_t step = 0; step < kSteps; ++step) {
      const std::int64_t point = kSteps - 1 - step;  // of the adjoint grid
      const double expected =
          kStep * adjoints[k][point / kFactor] * std::pow(Fine(kRates[k]), point % kFactor);
      // Some hundred roundings of numbers of size 1.
      EXPECT_NEAR(gradient[step][static_cast<std::int64_t>(k)].item<double>(), expected, 1e-13)
          << "mode " << k << " step " << step;
    }
  }
}

TEST_F(ContinuedPassTest, BothDirectionsGoOnFromWhereTheyAre) {
  for (const auto& [forward, backward] :
       {std::pair{1, 1}, std::pair{2, 1}, std::pair{1, 3}, std::pair{3, 2}}) {
    SCOPED_TRACE(::testing::Message() << forward << " forward, " << backward << " backward");
    net_.set_iterations(forward, backward);
    net_.KeepPasses();
    const at::Tensor first = Gradient(Square);
    net_.ContinueKeptPasses();
    const at::Tensor second = Gradient(Square);
    std::vector<std::vector<double>> before, after;
    for (std::size_t k = 0; k < kRates.size(); ++k) {
      const std::vector<double> u = Solved(kRates[k], kInput[k], forward);
      before.push_back(Solved(kRates[k], u.back(), backward));
      after.push_back(Iterated(kRates[k], Iterated(kRates[k], kInput[k], u).back(), before.back()));
    }
    ExpectGradient(first, before);
    ExpectGradient(second, after);
    EXPECT_GT(Norm(first - second), 1e-6 * Norm(first));
  }
}

// With a linear loss the gradient is the adjoint, and an iteration contracts its error by the factor of theory
// (Theorem 3.3 there) over the C-points 1 ... N - 1 of the adjoint grid.
TEST_F(ContinuedPassTest, EstimatesTheBiasToTheContractionFactor) {
  double rho = 0;
  for (const double rate : kRates) {
    const double mu = std::fabs(Coarse(rate));
    rho = std::max(rho, std::fabs(Interval(rate) - mu) * (1 - std::pow(mu, kIntervals - 2)) / (1 - mu));
  }
  ASSERT_LT(rho, 0.5);
  const at::Tensor exact = Exact(Linear);
  for (const int iterations : {1, 2, 3}) {
    net_.set_iterations(2, iterations);
    net_.KeepPasses();
    const at::Tensor biased = Gradient(Linear);
    net_.ContinueKeptPasses();
    const double estimate = Norm(Gradient(Linear) - biased);
    const double bias = Norm(exact - biased);
    ASSERT_GT(bias, 1e-7 * Norm(exact));
    EXPECT_LE(std::fabs(estimate - bias), rho * bias + 1e-13) << iterations;
  }
}

// On level 0 an F-sweep and N steps to C-points, then F-points from the corrected C-points; on level 1 the equations
// and the sweep. Calls recorded by autograd: one per step to a C-point in the forward, one per coarse step in the
// backward, and a VJP per step for the gradient.
TEST_F(ContinuedPassTest, CostsOneCycleInBothDirections) {
  for (const int iterations : {1, 4}) {
    net_.set_iterations(iterations, iterations);
    net_.KeepPasses();
    Gradient(Linear);
    net_.ContinueKeptPasses();
    const WorkTimes before = net_.work_times();
    block_->calls = block_->adjoints = 0;
    Gradient(Linear);
    const std::int64_t fine = (kIntervals - 1) * kFactor + 1 + kSteps - kIntervals,
                       coarse = 2 * kIntervals - 1;
    EXPECT_EQ(net_.last_forward().iterations, 1);
    EXPECT_EQ(net_.last_backward().iterations, 1);
    for (const Solution* solution : {&net_.last_forward(), &net_.last_backward()}) {
      EXPECT_EQ(OverRanks(solution->work.steps[0]), fine);
      EXPECT_EQ(OverRanks(solution->work.steps[1]), coarse);
    }
    const WorkTimes done = net_.work_times().Since(before);
    EXPECT_EQ(OverRanks(done.fine_evaluations()), 2 * fine);
    EXPECT_EQ(OverRanks(done.evaluations() - done.fine_evaluations()), 2 * coarse);
    EXPECT_EQ(OverRanks(block_->calls), fine + coarse + kIntervals + kIntervals);
    EXPECT_EQ(OverRanks(block_->adjoints), fine + coarse + kSteps);
  }
}

// As any recorded pass that waits for its backward: its steps are those of the options at its forward.
TEST_F(ContinuedPassTest, APassThatWaitsKeepsOptionsAsTheyAre) {
  const LayerParallelOptions other = MakeLayerParallelOptions(2, kFactor, 3, 1);
  net_.KeepPasses();
  Gradient(Linear);
  net_.ContinueKeptPasses();
  for (const char* pass : {"continued", "new"}) {
    const at::Tensor out = net_.Forward(at::tensor(kInput, at::kDouble));
    EXPECT_EQ(net_.CheckOptions(other).code(), absl::StatusCode::kFailedPrecondition) << pass;
    Gradients(Linear(out), {block_->sources});
    EXPECT_TRUE(net_.CheckOptions(other).ok()) << pass;
  }
}

TEST_F(ContinuedPassTest, EachPassGoesOnFromItsOwnAndTheNextOneIsNew) {
  const at::Tensor alone = Gradient(Square);
  std::vector<at::Tensor> apart;
  for (const double scale : {1.0, -3.0}) {
    net_.KeepPasses();
    Gradient(Square, scale);
    net_.ContinueKeptPasses();
    apart.push_back(Gradient(Square, scale));
  }
  net_.KeepPasses();
  EXPECT_TRUE(at::equal(Gradient(Square, 1.0), alone));
  Gradient(Square, -3.0);
  {
    const at::NoGradGuard no_grad;
    net_.Forward(at::tensor(kInput, at::kDouble));  // not recorded, so not kept
  }
  net_.ContinueKeptPasses();
  EXPECT_TRUE(at::equal(Gradient(Square, 1.0), apart[0]));
  EXPECT_TRUE(at::equal(Gradient(Square, -3.0), apart[1]));
  EXPECT_TRUE(at::equal(Gradient(Square), alone));
}

TEST_F(ContinuedPassTest, AnotherShapeIsRefused) {
  net_.KeepPasses();
  Gradient(Square);
  net_.ContinueKeptPasses();
  try {
    net_.Forward(at::zeros({2, static_cast<std::int64_t>(kRates.size())}, at::kDouble));
    ADD_FAILURE();
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find("another shape"), std::string::npos);
  }
}

}  // namespace
}  // namespace plait::mgrit
