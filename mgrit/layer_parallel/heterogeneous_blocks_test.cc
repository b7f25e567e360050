// Networks of blocks of several kinds and sizes, and networks in two parts because the shape of the state changes:
// states and gradients against autograd through the same blocks, in float64.
#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tanh.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <memory>
#include <utility>
#include <vector>

#include "comm/testing/world.h"
#include "mgrit/layer_parallel/layer_parallel.h"
#include "mgrit/layer_parallel/testing/residual.h"
#include "models/stackable_block.h"

namespace plait::mgrit {
namespace {

using namespace testing;  // NOLINT: the parts of these tests

constexpr std::int64_t kSteps = 26;
constexpr double kFinalTime = 1.5;
constexpr double kTolerance = 1e-12;  // as in layer_parallel_test

// u + dt V tanh(W u), through `hidden` units, for states of any width.
struct Wide : models::Block {
  Wide(std::int64_t width, std::int64_t hidden, std::uint64_t seed)
      : in(Numbers({hidden, width}, seed).requires_grad_(true)),
        out((Numbers({width, hidden}, seed + 500) / static_cast<double>(hidden)).requires_grad_(true)) {}
  models::BlockState Forward(const models::BlockState& state, const models::BlockContext& context) override {
    return {state.hidden + context.dt * at::linear(at::tanh(at::linear(state.hidden, in)), out)};
  }
  std::vector<at::Tensor> Parameters() const override { return {in, out}; }
  at::Tensor in, out;
};

// u + dt sin u.
struct Sine final : models::Block {
  models::BlockState Forward(const models::BlockState& state, const models::BlockContext& context) override {
    return {state.hidden + context.dt * at::sin(state.hidden)};
  }
  std::vector<at::Tensor> Parameters() const override { return {}; }
};

// u + dt b, or u: the derivative with respect to the state is the identity.
struct Shift final : models::Block {
  explicit Shift(std::uint64_t seed) : b(Numbers({kWidth}, seed).requires_grad_(true)) {}
  models::BlockState Forward(const models::BlockState& state, const models::BlockContext& context) override {
    return {state.hidden + context.dt * b};
  }
  std::vector<at::Tensor> Parameters() const override { return {b}; }
  at::Tensor b;
};
struct Identity final : models::Block {
  models::BlockState Forward(const models::BlockState& state, const models::BlockContext&) override {
    return state;
  }
  std::vector<at::Tensor> Parameters() const override { return {}; }
};

// Batches calls, assuming that all are of its own type.
struct Stacked final : Wide, models::StackableBlock {
  using Wide::Wide;
  bool PrefersMany(at::Device) const override { return true; }
  std::vector<at::Tensor> ForwardMany(absl::Span<const models::BlockCall> calls) override {
    ++together;
    std::vector<at::Tensor> results;
    for (const models::BlockCall& call : calls) {
      auto& own = dynamic_cast<Stacked&>(*call.block);
      results.push_back(own.Forward({call.hidden}, call.context).hidden);
    }
    return results;
  }
  int together = 0;
};

std::shared_ptr<models::Block> BlockOfStep(std::int64_t step, std::int64_t width = kWidth) {
  const auto seed = static_cast<std::uint64_t>(10 + step);
  if (step % 4 == 1) return std::make_shared<Sine>();
  if (step % 8 == 2) return std::make_shared<Wide>(width, 3 + step, seed);
  if (step % 8 != 6) return std::make_shared<Stacked>(width, 6, seed);
  return width == kWidth ? std::make_shared<Residual>(seed)
                         : std::shared_ptr<models::Block>(std::make_shared<Sine>());
}

struct Row {
  Row(std::int64_t steps, std::int64_t width) {
    for (std::int64_t i = 0; i < steps; ++i) blocks.push_back(BlockOfStep(i, width));
    Solve(MakeLayerParallelOptions(/*levels=*/2, /*cfactor=*/3, 12, 12));
  }
  Row(std::vector<std::shared_ptr<models::Block>> row, const LayerParallelOptions& options)
      : blocks(std::move(row)) {
    Solve(options);
  }
  void Solve(const LayerParallelOptions& options) {
    net = std::make_unique<LayerParallel>(
        comm::testing::World(), [this](std::int64_t step) { return blocks[step]; },
        static_cast<std::int64_t>(blocks.size()), kFinalTime, options);
  }
  at::Tensor Serial(const at::Tensor& u) const {
    return SerialForward([this](std::int64_t step) { return blocks[step]; },
                         static_cast<std::int64_t>(blocks.size()), kFinalTime, u);
  }
  std::vector<std::shared_ptr<models::Block>> blocks;
  std::unique_ptr<LayerParallel> net;
};

void ExpectSame(const at::Tensor& end, const at::Tensor& serial, const std::vector<at::Tensor>& leaves) {
  EXPECT_LT(RelativeError(end.detach(), serial.detach()), kTolerance);
  const std::vector<at::Tensor> actual = Gradients(LossOf(end), leaves),
                                expected = Gradients(LossOf(serial), leaves);
  for (std::size_t i = 0; i < leaves.size(); ++i)
    EXPECT_LT(RelativeError(actual[i], expected[i]), kTolerance) << i;
}

TEST(HeterogeneousBlocks, OfSeveralKindsAndSizes) {
  const Row row(kSteps, kWidth);
  const at::Tensor u_0 = Numbers({3, kWidth}, 1).requires_grad_(true);
  std::vector<at::Tensor> leaves = {u_0};
  for (const at::Tensor& parameter : row.net->Parameters()) leaves.push_back(parameter);
  ExpectSame(row.net->Forward(u_0), row.Serial(u_0), leaves);
  std::int64_t together = 0;
  for (const auto& block : row.blocks) {
    if (const auto* stacked = dynamic_cast<const Stacked*>(block.get())) together += stacked->together;
  }
  comm::testing::World().AllReduce(comm::BufferOf(absl::MakeSpan(&together, 1)));
  EXPECT_GT(together, 0) << "blocks of several kinds that prefer many calls are not tested";
}

// Autograd returns the adjoint of the state behind such a block itself, which must not become the state's before: memory of
// two states would be one. Solves after the first begin with the states that are there.
TEST(HeterogeneousBlocks, StepsWhoseDerivativeIsTheIdentity) {
  // Exact after as many as there are coarse steps, behind one that begins on the coarse level.
  for (const int iterations : {3, 12}) {
    for (const bool is_shift : {true, false}) {
      SCOPED_TRACE(iterations);
      std::vector<std::shared_ptr<models::Block>> blocks;
      for (int i = 0; i < 8; ++i) blocks.push_back(std::make_shared<Residual>(20 + i));
      for (const int i : {4, 5}) {
        if (is_shift) blocks[i] = std::make_shared<Shift>(40 + i);
        if (!is_shift) blocks[i] = std::make_shared<Identity>();
      }
      const Row row(blocks, MakeLayerParallelOptions(/*levels=*/2, /*cfactor=*/4, iterations, iterations));
      const at::Tensor u_0 = Numbers({3, kWidth}, 1).requires_grad_(true);
      std::vector<at::Tensor> leaves = {u_0};
      for (const at::Tensor& parameter : row.net->Parameters()) leaves.push_back(parameter);
      for (int pass = 0; pass < 3; ++pass) ExpectSame(row.net->Forward(u_0), row.Serial(u_0), leaves);
    }
  }
}

TEST(HeterogeneousBlocks, ARowIsCutWhereTheStateChangesItsShape) {
  constexpr std::int64_t kWider = 7;
  const Row first(kSteps, kWidth), second(8, kWider);
  const at::Tensor between = Numbers({kWider, kWidth}, 3).requires_grad_(true);
  const at::Tensor u_0 = Numbers({3, kWidth}, 1).requires_grad_(true);
  std::vector<at::Tensor> leaves = {u_0, between};
  for (const Row* row : {&first, &second}) {
    for (const at::Tensor& parameter : row->net->Parameters()) leaves.push_back(parameter);
  }
  ExpectSame(second.net->Forward(at::tanh(at::linear(first.net->Forward(u_0), between))),
             second.Serial(at::tanh(at::linear(first.Serial(u_0), between))), leaves);
}

}  // namespace
}  // namespace plait::mgrit
