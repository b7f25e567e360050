// How blocks are called: one final call per step and batch, at the final states; and results that are rejected.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/testing/world.h"
#include "mgrit/layer_parallel/layer_parallel.h"
#include "mgrit/layer_parallel/testing/residual.h"

namespace plait::mgrit {
namespace {

using namespace testing;  // NOLINT: the parts of these tests

constexpr double kFinalTime = 1.5;

struct Shape {
  std::int64_t steps;
  int levels;
  int cfactor;
  int iterations;
};
const Shape kShapes[] = {{16, 2, 4, 2}, {23, 3, 3, 2}, {24, 3, 2, 1}, {7, 1, 2, 1}, {5, 2, 2, 3}};

std::vector<std::int64_t> SumOverRanks(std::vector<std::int64_t> counts) {
  comm::testing::World().AllReduce(comm::BufferOf(absl::MakeSpan(counts)));
  return counts;
}

TEST(BlockContext, OneCallOfEachStepIsFinalOnOneRank) {
  for (const Shape& shape : kShapes) {
    const std::vector<std::pair<bool, bool>> ways = {
        {false, false}, {true, false}, {false, true}, {true, true}};
    for (const auto& [converging, recomputes] : ways) {
      std::vector<std::shared_ptr<Residual>> blocks;
      for (std::int64_t i = 0; i < shape.steps; ++i) blocks.push_back(std::make_shared<Residual>(10 + i));
      LayerParallelOptions options =
          MakeLayerParallelOptions(shape.levels, shape.cfactor, shape.iterations, 2);
      options.forward.skip_downcycle = converging;
      if (recomputes) options.recomputes = [](std::int64_t step) { return step % 3 != 1; };
      LayerParallel net(
          comm::testing::World(), [&](std::int64_t step) { return blocks[step]; }, shape.steps, kFinalTime,
          options);
      const auto expect_finals = [&](std::int64_t count, const char* when) {
        std::vector<std::int64_t> finals(shape.steps, 0), coarse(1, 0);
        for (std::int64_t step = 0; step < shape.steps; ++step) {
          for (const models::BlockContext& call : blocks[step]->calls) {
            coarse[0] += call.level > 0;
            if (!call.final) continue;
            ++finals[step];
            EXPECT_EQ(call.level, 0);
            EXPECT_EQ(call.step, step);
            EXPECT_NEAR(call.dt, kFinalTime / static_cast<double>(shape.steps), 1e-14);
          }
        }
        EXPECT_EQ(SumOverRanks(finals), std::vector<std::int64_t>(shape.steps, count))
            << shape.steps << " steps, " << shape.levels << " levels, " << when;
        EXPECT_EQ(SumOverRanks(coarse)[0] > 0, shape.levels > 1);
      };
      for (int batch = 1; batch <= 2; ++batch) {
        const at::Tensor loss = LossOf(net.Forward(Numbers({3, kWidth}, batch)));
        expect_finals(batch, "after the forward pass");
        loss.backward();
        expect_finals(batch, "after the backward pass");
      }
      const at::NoGradGuard no_grad;
      for (const auto& block : blocks) block->calls.clear();
      net.Forward(Numbers({3, kWidth}, 3));
      for (const auto& block : blocks) {
        for (const models::BlockContext& call : block->calls) EXPECT_FALSE(call.final);
      }
    }
  }
}

// u + dt tanh of batch norm of u, with running statistics.
struct Normalized : models::Block {
  models::BlockState Forward(const models::BlockState& in, const models::BlockContext& context) override {
    updates += context.final;
    const at::Tensor none;
    const at::Tensor normal = at::batch_norm(in.hidden, weight, bias, context.final ? mean : none,
                                             context.final ? variance : none, /*training=*/true,
                                             /*momentum=*/0.1, /*eps=*/1e-5, /*cudnn_enabled=*/false);
    return {in.hidden + context.dt * normal};
  }
  std::vector<at::Tensor> Parameters() const override { return {weight, bias}; }

  at::Tensor weight = Numbers({kWidth}, 3).requires_grad_(true);
  at::Tensor bias = Numbers({kWidth}, 4).requires_grad_(true);
  at::Tensor mean = at::zeros({kWidth}, at::kDouble);
  at::Tensor variance = at::ones({kWidth}, at::kDouble);
  int updates = 0;
};

// Converged, the statistics are those of the network run layer by layer.
TEST(BlockContext, RunningStatisticsMoveOncePerBatch) {
  constexpr std::int64_t kSteps = 23;
  std::vector<std::shared_ptr<Normalized>> serial, parallel;
  for (std::int64_t i = 0; i < kSteps; ++i) {
    serial.push_back(std::make_shared<Normalized>());
    parallel.push_back(std::make_shared<Normalized>());
  }
  LayerParallel net(
      comm::testing::World(), [&](std::int64_t step) { return parallel[step]; }, kSteps, kFinalTime,
      MakeLayerParallelOptions(3, 3, 30, 30));
  for (int batch = 1; batch <= 2; ++batch) {
    const at::Tensor u_0 = Numbers({6, kWidth}, batch);
    LossOf(SerialForward([&](std::int64_t step) { return serial[step]; }, kSteps, kFinalTime, u_0))
        .backward();
    LossOf(net.Forward(u_0)).backward();
    for (std::int64_t step = net.first_step(); step < net.last_step(); ++step) {
      EXPECT_EQ(parallel[step]->updates, batch) << "step " << step;
      EXPECT_LT(RelativeError(parallel[step]->mean, serial[step]->mean), 1e-12) << "step " << step;
      EXPECT_LT(RelativeError(parallel[step]->variance, serial[step]->variance), 1e-12) << "step " << step;
    }
  }
}

// Returns what a layer-parallel block may not.
struct Odd : Residual {
  using Residual::Residual;
  models::BlockState Forward(const models::BlockState& in, const models::BlockContext& context) override {
    models::BlockState out = Residual::Forward(in, context);
    if (with_auxiliary_loss) out.auxiliary_loss = out.hidden.sum();
    if (with_other_type) out.hidden = out.hidden.to(at::kFloat);
    if (with_other_shape) out.hidden = out.hidden.narrow(0, 0, 2);
    return out;
  }
  bool with_auxiliary_loss = false, with_other_type = false, with_other_shape = false;
};

TEST(BlockContext, AuxiliaryLossesAndOtherTypesAreRefused) {
  const auto block = std::make_shared<Odd>(1);
  LayerParallel net(comm::Communicator::Self(), block, 6, kFinalTime, MakeLayerParallelOptions(2, 3, 1, 1));
  const auto error = [&] {
    try {
      net.Forward(Numbers({3, kWidth}, 1));
    } catch (const c10::Error& e) {
      return std::string(e.what_without_backtrace());
    }
    return std::string();
  };
  block->with_auxiliary_loss = true;
  EXPECT_NE(error().find("returns an auxiliary loss"), std::string::npos) << error();
  block->with_auxiliary_loss = false;
  block->with_other_type = true;
  EXPECT_NE(error().find("must keep shape and type"), std::string::npos) << error();
  block->with_other_type = false;
  block->with_other_shape = true;
  EXPECT_NE(error().find("the block of step "), std::string::npos) << error();
  EXPECT_NE(error().find(" turns [3, 4] of Double into [2, 4] of Double"), std::string::npos) << error();
  block->with_other_shape = false;
  EXPECT_EQ(error(), "");
}

}  // namespace
}  // namespace plait::mgrit
