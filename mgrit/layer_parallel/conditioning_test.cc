// Tensors of the batch that blocks read besides their state: gradients against autograd through the same blocks, in
// float64; bitwise identical for any number of ranks.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tanh.h>
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
#include "models/conditioned_block.h"

namespace plait::mgrit {
namespace {

using namespace testing;  // NOLINT: the parts of these tests

constexpr std::int64_t kSteps = 14;
constexpr double kFinalTime = 1.5;
constexpr double kTolerance = 1e-12;  // as in layer_parallel_test

// u + dt tanh(u W^T + b + c m), with conditioning {c, m}; every third block reads none.
struct Forced final : Residual, models::ConditionedBlock {
  using Residual::Residual;
  models::BlockState ForwardConditioned(const models::BlockState& in,
                                        const std::vector<at::Tensor>& conditioning,
                                        const models::BlockContext& context) override {
    const at::Tensor forcing = conditioning[0] * conditioning[1].to(at::kDouble);
    return {in.hidden + context.dt * at::tanh(at::addmm(bias, in.hidden, weight.t()) + forcing)};
  }
};

std::shared_ptr<models::Block> BlockOfStep(std::int64_t step) {
  const auto seed = static_cast<std::uint64_t>(10 + step);
  if (step % 3 == 2) return std::make_shared<Residual>(seed);
  return std::make_shared<Forced>(seed);
}

struct Network {
  explicit Network(int levels, int iterations, const comm::Communicator& ranks = comm::testing::World(),
                   bool recomputes = false) {
    for (std::int64_t i = 0; i < kSteps; ++i) blocks.push_back(BlockOfStep(i));
    LayerParallelOptions options = MakeLayerParallelOptions(levels, 3, iterations, iterations);
    if (recomputes) options.recomputes = [](std::int64_t) { return true; };
    net = std::make_unique<LayerParallel>(
        ranks, [this](std::int64_t step) { return blocks[step]; }, kSteps, kFinalTime, options);
  }
  at::Tensor Serial(at::Tensor u, const std::vector<at::Tensor>& conditioning) const {
    for (std::int64_t step = 0; step < kSteps; ++step) {
      const models::BlockContext context = {.dt = kFinalTime / static_cast<double>(kSteps), .step = step};
      auto* const forced = dynamic_cast<models::ConditionedBlock*>(blocks[step].get());
      u = (forced != nullptr ? forced->ForwardConditioned({u}, conditioning, context)
                             : blocks[step]->Forward({u}, context))
              .hidden;
    }
    return u;
  }

  std::vector<std::shared_ptr<models::Block>> blocks;
  std::unique_ptr<LayerParallel> net;
};

at::Tensor Input(std::uint64_t batch) { return Numbers({3, kWidth}, batch).requires_grad_(true); }
// The conditioning: c, and a mask of another type.
std::vector<at::Tensor> Conditioning(std::uint64_t batch) {
  return {Numbers({3, kWidth}, 50 + batch).requires_grad_(true), Numbers({3, kWidth}, 60 + batch).gt(0)};
}

TEST(Conditioning, GradientsAreThoseOfAutograd) {
  for (const bool recomputes : {false, true}) {
    const Network network(/*levels=*/2, /*iterations=*/12, comm::testing::World(), recomputes);
    // The second batch has other tensors.
    for (const std::uint64_t batch : {1, 2}) {
      const at::Tensor u_0 = Input(batch);
      const std::vector<at::Tensor> conditioning = Conditioning(batch);
      std::vector<at::Tensor> leaves = {u_0, conditioning[0]};
      for (const at::Tensor& parameter : network.net->Parameters()) leaves.push_back(parameter);
      const at::Tensor end = network.net->Forward(u_0, {}, conditioning);
      const at::Tensor serial = network.Serial(u_0, conditioning);
      EXPECT_LT(RelativeError(end, serial.detach()), kTolerance);
      const std::vector<at::Tensor> actual = Gradients(LossOf(end), leaves);
      const std::vector<at::Tensor> expected = Gradients(LossOf(serial), leaves);
      for (std::size_t i = 0; i < leaves.size(); ++i)
        EXPECT_LT(RelativeError(actual[i], expected[i]), kTolerance) << i;
    }
  }
}

// Two passes wait for their backward, each with its own tensors, which are results of other layers.
TEST(Conditioning, EachPassHasItsOwn) {
  const Network network(/*levels=*/2, /*iterations=*/12);
  const at::Tensor scale = Numbers({kWidth}, 5).requires_grad_(true);
  const auto loss = [&](std::uint64_t batch, const auto& forward) {
    const std::vector<at::Tensor> given = Conditioning(batch);
    return LossOf(forward(Input(batch), std::vector<at::Tensor>{given[0] * scale, given[1]}));
  };
  const auto solved = [&](const at::Tensor& u, const std::vector<at::Tensor>& c) {
    return network.net->Forward(u, {}, c);
  };
  const auto serial = [&](const at::Tensor& u, const std::vector<at::Tensor>& c) {
    return network.Serial(u, c);
  };
  const at::Tensor first = loss(1, solved), second = loss(2, solved);
  EXPECT_LT(RelativeError(Gradients(first, {scale})[0], Gradients(loss(1, serial), {scale})[0]), kTolerance);
  EXPECT_LT(RelativeError(Gradients(second, {scale})[0], Gradients(loss(2, serial), {scale})[0]), kTolerance);
}

TEST(Conditioning, FewIterationsHaveTheBitsOfOneRank) {
  const auto gradient = [](const comm::Communicator& ranks) {
    const Network network(/*levels=*/3, /*iterations=*/1, ranks);
    const std::vector<at::Tensor> conditioning = Conditioning(1);
    return Gradients(LossOf(network.net->Forward(Input(1), {}, conditioning)), {conditioning[0]})[0];
  };
  EXPECT_TRUE(at::equal(gradient(comm::testing::World()), gradient(comm::Communicator::Self())));
}

TEST(Conditioning, WithoutGradientsTheStateAloneIsRight) {
  const at::NoGradGuard no_grad;
  const Network network(/*levels=*/2, /*iterations=*/12);
  const at::Tensor end = network.net->Forward(Input(1), {}, Conditioning(1));
  EXPECT_LT(RelativeError(end, network.Serial(Input(1), Conditioning(1))), kTolerance);
}

std::string ErrorOf(const std::function<void()>& run) {
  try {
    run();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

TEST(Conditioning, ThatWasChangedBeforeTheBackwardIsFoundOut) {
  const Network network(/*levels=*/2, /*iterations=*/2);
  const std::vector<at::Tensor> conditioning = Conditioning(1);
  const at::Tensor loss = LossOf(network.net->Forward(Input(1), {}, conditioning));
  conditioning[0].detach().add_(1);
  const std::string error = ErrorOf([&] { loss.backward(); });
  EXPECT_NE(error.find("modified by an inplace operation"), std::string::npos) << error;
}

TEST(Conditioning, StepsWithKernelsOfTheirOwnRefuseIt) {
  struct Kernel final : TensorStep {
    struct Nothing final : Tape {
      void Clear() override {}
    };
    std::vector<at::Tensor> Parameters() override { return {}; }
    std::int64_t SharedParameters() const override { return 0; }
    void SetOwnSteps(std::int64_t, std::int64_t) override {}
    std::unique_ptr<Tape> NewTape() const override { return std::make_unique<Nothing>(); }
    void Begin(Tape*, const models::BlockContext&) override {}
    void BeginAdjoint(Tape&) override {}
    void Forward(const StepInterval&, const at::Tensor& u, at::Tensor& out) override { out = u.clone(); }
    void Adjoint(const StepInterval&, const at::Tensor&, const at::Tensor& lambda, at::Tensor& out) override {
      out = lambda.clone();
    }
    void AddGradients(absl::Span<const StepInterval>, const TensorAt&, const TensorAt&,
                      absl::Span<at::Tensor>) override {}
  };
  LayerParallel net(comm::testing::World(), std::make_shared<Kernel>(), kSteps, kFinalTime,
                    MakeLayerParallelOptions(2, 3, 1, 1));
  EXPECT_NE(ErrorOf([&] { net.Forward(Input(1), {}, Conditioning(1)); }).find("take no conditioning"),
            std::string::npos);
  EXPECT_EQ(ErrorOf([&] { net.Forward(Input(1)); }), "");
}

}  // namespace
}  // namespace plait::mgrit
