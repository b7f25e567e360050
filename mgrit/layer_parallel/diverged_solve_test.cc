// Solves whose residual is not finite are repeated serially; serial propagation; the context that blocks are called
// with.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/sqrt.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>
#include <memory>
#include <vector>

#include "comm/testing/world.h"
#include "mgrit/layer_parallel/layer_parallel.h"
#include "mgrit/layer_parallel/testing/residual.h"

namespace plait::mgrit {
namespace {

using namespace testing;  // NOLINT: the parts of these tests

constexpr std::int64_t kSteps = 12;
constexpr int kFactor = 3;
constexpr double kFinalTime = 1.5;
constexpr double kTolerance = 1e-12;  // as in layer_parallel_test

enum class Coarse { kGood, kLarge, kInfinite, kInfiniteAdjoint };

// Coarse steps fail as unstable ones do: with large or infinite states, or with derivatives that are not finite.
struct Unstable final : Residual {
  Unstable(std::uint64_t seed, Coarse what) : Residual(seed), coarse(what) {}
  models::BlockState Forward(const models::BlockState& in, const models::BlockContext& context) override {
    models::BlockState out = Residual::Forward(in, context);
    if (context.level == 0 || coarse == Coarse::kGood) return out;
    if (coarse == Coarse::kLarge) return {1e3 * out.hidden};
    if (coarse == Coarse::kInfinite) return {out.hidden * std::numeric_limits<double>::infinity()};
    return {out.hidden + at::sqrt(0 * in.hidden)};  // 0, with a derivative that is not a number
  }
  Coarse coarse;
};

LayerParallelOptions TwoIterations() {
  return MakeLayerParallelOptions(/*levels=*/2, kFactor, /*forward_iterations=*/2, /*backward_iterations=*/2);
}

struct Network {
  explicit Network(Coarse coarse, const LayerParallelOptions& options = TwoIterations()) {
    for (std::int64_t i = 0; i < kSteps; ++i) blocks.push_back(std::make_shared<Unstable>(10 + i, coarse));
    net = std::make_unique<LayerParallel>(
        comm::testing::World(), [this](std::int64_t step) { return blocks[step]; }, kSteps, kFinalTime,
        options);
  }
  // A step is final once, where a failed solve has not begun with true states.
  void ExpectFinalOnce(int factor = kFactor) const {
    std::vector<std::int64_t> finals(kSteps, 0);
    for (std::int64_t step = 0; step < kSteps; ++step) {
      for (const models::BlockContext& call : blocks[step]->calls) finals[step] += call.final ? 1 : 0;
    }
    comm::testing::World().AllReduce(comm::BufferOf(absl::MakeSpan(finals)));
    for (std::int64_t step = factor; step < kSteps; ++step) EXPECT_EQ(finals[step], 1) << step;
  }
  // Own gradients and the end state are those of one block after another.
  void ExpectSerial(const at::Tensor& end) const {
    const std::vector<at::Tensor> actual = Gradients(LossOf(end), net->Parameters());
    const BlockOf block_of = [this](std::int64_t step) { return blocks[step]; };
    const at::Tensor serial = SerialForward(block_of, kSteps, kFinalTime, Numbers({3, kWidth}, 1));
    EXPECT_LT(RelativeError(end, serial), kTolerance);
    const std::vector<at::Tensor> expected = Gradients(LossOf(serial), net->Parameters());
    for (std::size_t i = 0; i < actual.size(); ++i)
      EXPECT_LT(RelativeError(actual[i], expected[i]), kTolerance) << i;
  }

  std::vector<std::shared_ptr<Unstable>> blocks;
  std::unique_ptr<LayerParallel> net;
};

TEST(DivergedSolve, ForwardIsDoneAgainSerially) {
  Network network(Coarse::kInfinite);
  const at::Tensor end = network.net->Forward(Numbers({3, kWidth}, 1));
  EXPECT_TRUE(network.net->last_forward().diverged);
  EXPECT_FALSE(network.net->last_forward().converged);
  EXPECT_EQ(network.net->diverged_solves(), 1);
  network.ExpectFinalOnce();
  // The adjoint's coarse steps are linearised at infinity, too.
  network.ExpectSerial(end);
  EXPECT_EQ(network.net->diverged_solves(), 2);
}

TEST(DivergedSolve, FiniteStatesOfOneAreNotFinalEither) {
  LayerParallelOptions options = TwoIterations();
  options.forward.skip_downcycle = false;
  options.forward.divergence_factor = 10;
  Network network(Coarse::kLarge, options);
  network.net->Forward(Numbers({3, kWidth}, 1));
  EXPECT_TRUE(network.net->last_forward().diverged);
  network.ExpectFinalOnce();
}

// A residual after the cycle leaves only the steps behind the last C-point to the final relaxation.
TEST(DivergedSolve, NoStepIsFinalWhereTheFirstIterationShowsIt) {
  constexpr int kUneven = 5;
  LayerParallelOptions options = TwoIterations();
  options.forward.cfactors = options.backward.cfactors = {kUneven};
  options.forward.max_iterations = 1;
  options.forward.residual_time = ResidualTime::kCycle;
  Network network(Coarse::kInfinite, options);
  network.net->Forward(Numbers({3, kWidth}, 1));
  EXPECT_TRUE(network.net->last_forward().diverged);
  network.ExpectFinalOnce(kUneven);
}

// The first pass measures no residual and leaves infinite states, from which the second one starts.
TEST(DivergedSolve, NoStepIsFinalThatBeginsWithThePreviousStates) {
  LayerParallelOptions options = TwoIterations();
  options.forward.max_iterations = 1;
  options.forward.keep_previous_states = true;
  Network network(Coarse::kInfinite, options);
  network.net->Forward(Numbers({3, kWidth}, 1));
  EXPECT_FALSE(network.net->last_forward().diverged);
  for (const auto& block : network.blocks) block->calls.clear();
  network.net->Forward(Numbers({3, kWidth}, 1));
  EXPECT_TRUE(network.net->last_forward().diverged);
  network.ExpectFinalOnce();
}

TEST(DivergedSolve, AdjointIsDoneAgainSerially) {
  Network network(Coarse::kInfiniteAdjoint);
  const at::Tensor end = network.net->Forward(Numbers({3, kWidth}, 1));
  EXPECT_FALSE(network.net->last_forward().diverged);
  EXPECT_EQ(network.net->diverged_solves(), 0);
  const std::vector<at::Tensor> actual = Gradients(LossOf(end), network.net->Parameters());
  EXPECT_TRUE(network.net->last_backward().diverged);
  EXPECT_FALSE(network.net->last_backward().converged);
  EXPECT_EQ(network.net->diverged_solves(), 1);
  for (const at::Tensor& gradient : actual) EXPECT_TRUE(gradient.isfinite().all().item<bool>());
}

TEST(DivergedSolve, WithoutGradientsToo) {
  const at::NoGradGuard no_grad;
  Network network(Coarse::kInfinite);
  const at::Tensor end = network.net->Forward(Numbers({3, kWidth}, 1));
  const BlockOf block_of = [&](std::int64_t step) { return network.blocks[step]; };
  EXPECT_LT(RelativeError(end, SerialForward(block_of, kSteps, kFinalTime, Numbers({3, kWidth}, 1))),
            kTolerance);
}

TEST(Propagation, SerialIsExactAndTakesEachStepOnce) {
  Network network(Coarse::kGood);
  network.net->set_propagation(Propagation::kSerial);
  const at::Tensor end = network.net->Forward(Numbers({3, kWidth}, 1));
  std::vector<std::int64_t> calls(1, 0);
  for (const auto& block : network.blocks) calls[0] += static_cast<std::int64_t>(block->calls.size());
  comm::testing::World().AllReduce(comm::BufferOf(absl::MakeSpan(calls)));
  EXPECT_EQ(calls[0], kSteps);
  network.ExpectSerial(end);
  // And back.
  network.net->set_propagation(Propagation::kParallel);
  const at::Tensor parallel = network.net->Forward(Numbers({3, kWidth}, 1));
  EXPECT_GT(RelativeError(parallel, end.detach()), 1e-8);
}

TEST(Propagation, EveryCallHasTheContextOfItsPass) {
  Network network(Coarse::kGood);
  const at::Tensor first =
      network.net->Forward(Numbers({3, kWidth}, 1), {.random = {.seed = 7, .first_sample = 3}});
  for (const auto& block : network.blocks) {
    for (const models::BlockContext& call : block->calls) {
      EXPECT_EQ(call.random.seed, 7U);
      EXPECT_EQ(call.random.first_sample, 3);
    }
    block->calls.clear();
  }
  // Its adjoint comes behind another pass.
  network.net->Forward(Numbers({3, kWidth}, 2), {.random = {.seed = 8}});
  for (const auto& block : network.blocks) block->calls.clear();
  LossOf(first).backward();
  bool coarse = false;
  for (const auto& block : network.blocks) {
    for (const models::BlockContext& call : block->calls) {
      EXPECT_EQ(call.random.seed, 7U);
      coarse = coarse || call.level > 0;
    }
  }
  EXPECT_TRUE(coarse || comm::testing::World().size() > 1) << "the adjoint's coarse steps are not tested";
}

}  // namespace
}  // namespace plait::mgrit
