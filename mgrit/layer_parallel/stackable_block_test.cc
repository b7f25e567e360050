// Networks whose relaxation batches steps against the same networks with single steps.
#include "models/stackable_block.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "comm/testing/world.h"
#include "mgrit/layer_parallel/layer_parallel.h"
#include "mgrit/layer_parallel/testing/residual.h"

namespace plait::mgrit {
namespace {

using namespace testing;  // NOLINT: the parts of these tests

constexpr std::int64_t kSteps = 23;
constexpr double kTime = 1.5;

enum class Fault { kNone, kDeclines, kTooFew, kOtherShape };

struct Many : Residual, models::StackableBlock {
  explicit Many(std::uint64_t seed, Fault what = Fault::kNone) : Residual(seed), fault(what) {}
  bool PrefersMany(at::Device) const override { return true; }
  std::vector<at::Tensor> ForwardMany(absl::Span<const models::BlockCall> together) override {
    sizes->push_back(together.size());
    if (fault == Fault::kDeclines) return {};
    std::vector<at::Tensor> weights, biases, inputs, steps;
    for (const models::BlockCall& call : together) {
      EXPECT_FALSE(call.context.final);
      auto* block = dynamic_cast<Many*>(call.block);
      weights.push_back(block->weight.t());
      biases.push_back(block->bias);
      inputs.push_back(call.hidden);
      steps.push_back(at::tensor(call.context.dt, at::kDouble));
    }
    const at::Tensor u = at::stack(inputs);
    const at::Tensor f = at::tanh(at::baddbmm(at::stack(biases).unsqueeze(1), u, at::stack(weights)));
    std::vector<at::Tensor> results = (u + at::stack(steps).view({-1, 1, 1}) * f).unbind(0);
    if (fault == Fault::kTooFew) results.pop_back();
    if (fault == Fault::kOtherShape) results[1] = results[1].narrow(1, 0, 1);
    return results;
  }

  Fault fault;
  std::shared_ptr<std::vector<std::size_t>> sizes = std::make_shared<std::vector<std::size_t>>();
};

struct Results {
  at::Tensor end;
  std::vector<at::Tensor> gradients;        // of u_0, then of the own parameters
  std::vector<models::BlockContext> calls;  // of own blocks, one at a time
  std::vector<std::size_t> sizes;           // of the calls together
};

Results Solve(bool many, bool shared, const LayerParallelOptions& options, Fault fault = Fault::kNone) {
  std::vector<std::shared_ptr<Residual>> blocks;
  const auto sizes = std::make_shared<std::vector<std::size_t>>();
  const auto make = [&](std::int64_t step) -> std::shared_ptr<models::Block> {
    std::shared_ptr<Residual> block;
    if (many) {
      auto stackable = std::make_shared<Many>(10 + step, fault);
      stackable->sizes = sizes;
      block = stackable;
    } else {
      block = std::make_shared<Residual>(10 + step);
    }
    blocks.push_back(block);
    return block;
  };
  LayerParallel net = shared ? LayerParallel(comm::testing::World(), make(0), kSteps, kTime, options)
                             : LayerParallel(comm::testing::World(), make, kSteps, kTime, options);
  Results results;
  const at::Tensor u_0 = Numbers({3, kWidth}, 5).requires_grad_(true);
  results.end = net.Forward(u_0);
  for (const auto& block : blocks) {
    results.calls.insert(results.calls.end(), block->calls.begin(), block->calls.end());
  }
  std::vector<at::Tensor> leaves = net.Parameters();
  leaves.insert(leaves.begin(), u_0);
  results.gradients = Gradients(LossOf(results.end), leaves);
  results.sizes = *sizes;
  return results;
}

std::vector<LayerParallelOptions> Settings() {
  LayerParallelOptions full = MakeLayerParallelOptions(3, 3, 2, 2);
  full.forward.cf_sweeps = full.backward.cf_sweeps = {1};
  return {MakeLayerParallelOptions(3, 3, 2, 2), MakeLayerParallelOptions(2, 4, 3, 1), full,
          MakeLayerParallelOptions(3, 3, 30, 30)};
}

// A step errs by 2 k u sum |a b| <= 10 u of its state here (k = 4, entries below 1), every state follows from some
// hundred of them, and no step makes a difference larger than 1 + dt * 4 times.
constexpr double kTolerance = 1e3 * 0x1p-53 * 10;

TEST(StackableBlock, SolvesAsOneByOneDoes) {
  for (const LayerParallelOptions& options : Settings()) {
    for (const bool shared : {false, true}) {
      const Results one = Solve(false, shared, options), many = Solve(true, shared, options);
      EXPECT_LT(RelativeError(many.end, one.end), kTolerance);
      ASSERT_EQ(many.gradients.size(), one.gradients.size());
      for (std::size_t i = 0; i < one.gradients.size(); ++i) {
        EXPECT_LT(RelativeError(many.gradients[i], one.gradients[i]), kTolerance) << "gradient " << i;
      }
    }
  }
}

// Batched calls replace single ones; final calls stay single.
TEST(StackableBlock, TakesTheStepsOfRelaxationTogether) {
  for (const LayerParallelOptions& options : Settings()) {
    const Results one = Solve(false, false, options), many = Solve(true, false, options);
    std::size_t together = 0, calls = 0;
    for (const std::size_t size : many.sizes) {
      EXPECT_GE(size, 2u);
      together += size;
      ++calls;
    }
    EXPECT_EQ(many.calls.size() + together, one.calls.size());
    const auto finals = [](const Results& results) {
      return std::count_if(results.calls.begin(), results.calls.end(),
                           [](const models::BlockContext& call) { return call.final; });
    };
    EXPECT_EQ(finals(many), finals(one));
    if (comm::testing::World().size() == 1) {
      EXPECT_GT(calls, 0u);
    }
  }
}

TEST(StackableBlock, ThatDeclinesIsCalledOneByOne) {
  const LayerParallelOptions options = Settings()[0];
  const Results one = Solve(false, false, options), declined = Solve(true, false, options, Fault::kDeclines);
  EXPECT_TRUE(declined.end.equal(one.end));
  for (std::size_t i = 0; i < one.gradients.size(); ++i) {
    EXPECT_TRUE(declined.gradients[i].equal(one.gradients[i]));
  }
}

TEST(StackableBlock, ResultsMustFit) {
  if (comm::testing::World().size() > 1) return;  // others would wait
  EXPECT_THROW(Solve(true, false, Settings()[0], Fault::kTooFew), c10::Error);
  EXPECT_THROW(Solve(true, false, Settings()[0], Fault::kOtherShape), c10::Error);
}

}  // namespace
}  // namespace plait::mgrit
