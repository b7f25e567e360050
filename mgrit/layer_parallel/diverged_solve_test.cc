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

enum class Coarse { kGood, kInfinite, kInfiniteAdjoint };

// Coarse steps fail as unstable ones do: with infinite states, or with derivatives that are not finite.
struct Unstable final : Residual {
  Unstable(std::uint64_t seed, Coarse what) : Residual(seed), coarse(what) {}
  models::BlockState Forward(const models::BlockState& in, const models::BlockContext& context) override {
    models::BlockState out = Residual::Forward(in, context);
    if (context.level == 0 || coarse == Coarse::kGood) return out;
    if (coarse == Coarse::kInfinite) return {out.hidden * std::numeric_limits<double>::infinity()};
    return {out.hidden + at::sqrt(0 * in.hidden)};  // 0, with a derivative that is not a number
  }
  Coarse coarse;
};

struct Network {
  explicit Network(Coarse coarse, int levels = 2) {
    for (std::int64_t i = 0; i < kSteps; ++i) blocks.push_back(std::make_shared<Unstable>(10 + i, coarse));
    net = std::make_unique<LayerParallel>(
        comm::testing::World(), [this](std::int64_t step) { return blocks[step]; }, kSteps, kFinalTime,
        MakeLayerParallelOptions(levels, kFactor, /*forward_iterations=*/2, /*backward_iterations=*/2));
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
  EXPECT_EQ(network.net->diverged_solves(), 1);
  // A step is final once, where the failed solve has not begun with true states.
  std::vector<std::int64_t> finals(kSteps, 0);
  for (std::int64_t step = 0; step < kSteps; ++step) {
    for (const models::BlockContext& call : network.blocks[step]->calls) finals[step] += call.final ? 1 : 0;
  }
  comm::testing::World().AllReduce(comm::BufferOf(absl::MakeSpan(finals)));
  for (std::int64_t step = kFactor; step < kSteps; ++step) EXPECT_EQ(finals[step], 1) << step;
  // The adjoint's coarse steps are linearised at infinity, too.
  network.ExpectSerial(end);
  EXPECT_EQ(network.net->diverged_solves(), 2);
}

TEST(DivergedSolve, AdjointIsDoneAgainSerially) {
  Network network(Coarse::kInfiniteAdjoint);
  const at::Tensor end = network.net->Forward(Numbers({3, kWidth}, 1));
  EXPECT_FALSE(network.net->last_forward().diverged);
  EXPECT_EQ(network.net->diverged_solves(), 0);
  const std::vector<at::Tensor> actual = Gradients(LossOf(end), network.net->Parameters());
  EXPECT_TRUE(network.net->last_backward().diverged);
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
