// Steps whose activations are not kept: results bitwise those of kept steps, gradients of parameters accumulated once,
// and activations of one step at a time in memory.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tanh.h>
#include <c10/util/intrusive_ptr.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "comm/testing/world.h"
#include "mgrit/layer_parallel/layer_parallel.h"
#include "mgrit/layer_parallel/testing/residual.h"

namespace plait::mgrit {
namespace {

using namespace testing;  // NOLINT: the parts of these tests

constexpr std::int64_t kSteps = 14;
constexpr int kFactor = 3;
constexpr double kFinalTime = 1.5;
constexpr double kTolerance = 1e-12;  // as in layer_parallel_test

using Recomputes = std::function<bool(std::int64_t step)>;
bool All(std::int64_t) { return true; }
bool Some(std::int64_t step) { return step % 4 < 2; }

// What autograd keeps of a recorded call: the tanh, which its derivative needs.
struct Watched : Residual {
  Watched(std::uint64_t seed, std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>>& kept_activations)
      : Residual(seed), kept(kept_activations) {}
  models::BlockState Forward(const models::BlockState& in, const models::BlockContext& context) override {
    const at::Tensor activation = at::tanh(at::addmm(bias, in.hidden, weight.t()));
    if (at::GradMode::is_enabled()) kept.push_back(activation.storage().getWeakStorageImpl());
    most = std::max(most, Alive());
    return {in.hidden + context.dt * activation};
  }
  std::int64_t Alive() const {
    return std::count_if(kept.begin(), kept.end(), [](const auto& weak) { return weak.use_count() > 0; });
  }
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>>& kept;
  std::int64_t most = 0;
};

struct Network {
  Network(const Recomputes& recomputes, int levels, int iterations) {
    for (std::int64_t i = 0; i < kSteps; ++i)
      blocks.push_back(std::make_shared<Watched>(10 + i, activations));
    LayerParallelOptions options = MakeLayerParallelOptions(levels, kFactor, iterations, iterations);
    options.recomputes = recomputes;
    net = std::make_unique<LayerParallel>(
        comm::testing::World(), [this](std::int64_t step) { return blocks[step]; }, kSteps, kFinalTime,
        options);
  }
  // Of the own steps that are kept.
  std::int64_t Kept(const Recomputes& recomputes) const {
    std::int64_t count = 0;
    for (std::int64_t step = net->first_step(); step < net->last_step(); ++step)
      count += recomputes(step) ? 0 : 1;
    return count;
  }

  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> activations;
  std::vector<std::shared_ptr<Watched>> blocks;
  std::unique_ptr<LayerParallel> net;
};

// The end state, then the gradients that a backward pass has left in own parameters.
std::vector<at::Tensor> ResultsOf(const Network& network) {
  const at::Tensor u_0 = Numbers({3, kWidth}, 1).requires_grad_(true);
  const at::Tensor end = network.net->Forward(u_0);
  LossOf(end).backward();
  std::vector<at::Tensor> results = {end.detach(), u_0.grad()};
  for (const at::Tensor& parameter : network.net->Parameters()) results.push_back(parameter.grad());
  return results;
}

TEST(RecomputedSteps, HaveTheBitsOfThoseThatAreKept) {
  for (const int levels : {1, 2, 3}) {
    for (const int iterations : {1, 2}) {
      const std::vector<at::Tensor> expected = ResultsOf(Network({}, levels, iterations));
      for (const Recomputes& recomputes : {Recomputes(All), Recomputes(Some)}) {
        const std::vector<at::Tensor> actual = ResultsOf(Network(recomputes, levels, iterations));
        ASSERT_EQ(actual.size(), expected.size());
        for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_TRUE(at::equal(actual[i], expected[i])) << i;
      }
    }
  }
}

TEST(RecomputedSteps, ConvergedAreThoseOfPlainAutograd) {
  const Network network(All, /*levels=*/2, /*iterations=*/12);
  const std::vector<at::Tensor> actual = ResultsOf(network);
  const BlockOf block_of = [&](std::int64_t step) { return network.blocks[step]; };
  const at::Tensor u_0 = Numbers({3, kWidth}, 1).requires_grad_(true);
  const at::Tensor end = SerialForward(block_of, kSteps, kFinalTime, u_0);
  std::vector<at::Tensor> leaves = {u_0};
  for (const at::Tensor& parameter : network.net->Parameters()) leaves.push_back(parameter);
  std::vector<at::Tensor> expected = Gradients(LossOf(end), leaves);
  expected.insert(expected.begin(), end);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_LT(RelativeError(actual[i], expected[i].detach()), kTolerance) << i;
  }
}

TEST(RecomputedSteps, KeepTheActivationsOfOneStepAtATime) {
  for (const Recomputes& recomputes : {Recomputes(All), Recomputes(Some)}) {
    const Network network(recomputes, /*levels=*/1, /*iterations=*/1);
    const Watched& any = *network.blocks[0];
    const std::int64_t kept = network.Kept(recomputes);
    const at::Tensor loss = LossOf(network.net->Forward(Numbers({3, kWidth}, 1)));
    EXPECT_EQ(any.Alive(), kept);
    loss.backward();
    EXPECT_EQ(any.Alive(), 0);
    for (std::int64_t step = network.net->first_step(); step < network.net->last_step(); ++step) {
      EXPECT_LE(network.blocks[step]->most, kept + 1) << step;
    }
  }
}

}  // namespace
}  // namespace plait::mgrit
