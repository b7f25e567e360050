// A residual network whose steps are solved layer-parallel over two ranks, its states replicated (ddp) or
// sharded (zero1, zero2, fsdp) over two more, with converged MGRIT, against one rank that takes the steps one
// after the other, with LibTorch's AdamW, in float64.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tanh.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <memory>
#include <string>
#include <vector>

#include "comm/device_mesh.h"
#include "comm/testing/world.h"
#include "mgrit/layer_parallel/layer_parallel.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/sharding/data_parallel.h"
#include "tests/parity/serial_adamw.h"

namespace plait::parity {
namespace {

using comm::testing::World;
using models::BlockState;

constexpr int kLayerRanks = 2, kDataRanks = 2, kSteps = 5;
constexpr std::int64_t kLayers = 8, kWidth = 6, kInputs = 5, kClasses = 3, kSamples = 4;
constexpr double kDt = 0.25;
constexpr double kClip = 0.1;
const parallel::ShardedOptimizerOptions kAdamW = {
    .lr = 1e-2, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.1};
// As the parity matrix. MGRIT is exact after as many iterations as there are coarse points (4).
constexpr double kTolerance = 1e-12;
constexpr int kIterations = 5;

// Sines of squares: the same on every rank.
at::Tensor Numbers(std::vector<std::int64_t> sizes, double seed) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  const at::Tensor n = at::arange(count, at::kDouble) + seed;
  return at::sin(n * n * 0.37).view(sizes);
}
at::Tensor Parameter(std::vector<std::int64_t> sizes, double seed) {
  return (Numbers(std::move(sizes), seed) * 0.5).requires_grad_(true);
}

struct ResidualBlock final : models::Block {
  explicit ResidualBlock(std::int64_t step)
      : weight(Parameter({kWidth, kWidth}, 100 + 10.0 * step)),
        bias(Parameter({kWidth}, 500 + 10.0 * step)) {}
  BlockState Forward(const BlockState& u, const models::BlockContext& context) override {
    return {u.hidden + context.dt * at::tanh(at::mm(u.hidden, weight) + bias)};
  }
  std::vector<at::Tensor> Parameters() const override { return {weight, bias}; }
  at::Tensor weight, bias;
};

struct Ends {
  at::Tensor opening = Parameter({kInputs, kWidth}, 1), closing = Parameter({kWidth, kClasses}, 50);
};

at::Tensor Inputs(int step, int data_rank) {
  return Numbers({kSamples, kInputs}, 1000 + 70.5 * step + 7 * data_rank);
}

// Of one data rank's samples; the parts of all add up to the mean.
at::Tensor LossOf(const at::Tensor& scores, int step, int data_rank) {
  const at::Tensor difference = scores - Numbers({kSamples, kClasses}, 2000 + 70.5 * step + 7 * data_rank);
  return (difference * difference).sum() / static_cast<double>(kSamples * kDataRanks);
}

models::ParameterUnit UnitOf(const ResidualBlock& block, std::int64_t step, int index) {
  const std::string name = "step." + std::to_string(step);
  return models::MakeUnit(name, {{name + ".weight", block.weight}, {name + ".bias", block.bias}}, index);
}

models::ParameterUnit RootOf(const Ends& ends) {
  models::ParameterUnit root =
      models::MakeUnit("root", {{"opening", ends.opening}, {"closing", ends.closing}});
  for (models::ParameterSpec& p : root.parameters) p.placement.replicated = {"lp"};
  return root;
}

class LayerParallelRun {
 public:
  LayerParallelRun(parallel::Strategy strategy, const comm::DeviceMesh& mesh)
      : data_rank_(mesh.axis(strategy == parallel::Strategy::kDdp ? "dp_replicate" : "dp_shard").rank()),
        net_(
            mesh.axis("lp"),
            [this](std::int64_t step) { return blocks_.emplace_back(std::make_shared<ResidualBlock>(step)); },
            kLayers, kDt * kLayers,
            mgrit::MakeLayerParallelOptions(/*levels=*/2, /*cfactor=*/2, kIterations, kIterations)) {
    std::vector<models::ParameterUnit> units = {RootOf(ends_)};
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const std::int64_t step = net_.first_step() + static_cast<std::int64_t>(i);
      units.push_back(UnitOf(*blocks_[i], step, static_cast<int>(i)));
    }
    dp_ = *parallel::DataParallel::Create(mesh, units, {.strategy = strategy});
    optimizer_ = std::make_unique<parallel::ShardedOptimizer>(*dp_, kAdamW);
  }

  // This data rank's part of the loss.
  double Step(int step) {
    const at::Tensor loss = dp_->Forward([&] {
      const at::Tensor u_0 = at::mm(Inputs(step, data_rank_), ends_.opening);
      const auto solve = [&](const BlockState& u) { return BlockState{net_.Forward(u.hidden)}; };
      const at::Tensor end = dp_->Run(0, blocks_.size(), solve, {u_0}).hidden;
      return LossOf(at::mm(end, ends_.closing), step, data_rank_);
    });
    dp_->Backward(loss);
    EXPECT_GT(optimizer_->Step({.clip_norm = kClip}).gradient_norm, kClip) << "clipping is not tested";
    return loss.item<double>();
  }

  parallel::DataParallel& engine() { return *dp_; }

 private:
  int data_rank_;
  Ends ends_;
  std::vector<std::shared_ptr<ResidualBlock>> blocks_;
  mgrit::LayerParallel net_;
  std::unique_ptr<parallel::DataParallel> dp_;
  std::unique_ptr<parallel::ShardedOptimizer> optimizer_;
};

SerialTraining SerialRun() {
  SerialTraining run;
  const Ends ends;
  std::vector<std::shared_ptr<ResidualBlock>> blocks;
  std::vector<models::ParameterUnit> units = {RootOf(ends)};
  for (std::int64_t step = 0; step < kLayers; ++step) {
    blocks.push_back(std::make_shared<ResidualBlock>(step));
    units.push_back(UnitOf(*blocks.back(), step, static_cast<int>(step)));
  }
  run.parameters = NamedParameters(units);
  SerialAdamW optimizer(run.parameters, kAdamW);
  for (int step = 0; step < kSteps; ++step) {
    optimizer.ZeroGradients();
    double loss = 0;
    for (int rank = 0; rank < kDataRanks; ++rank) {
      BlockState u = {at::mm(Inputs(step, rank), ends.opening)};
      for (const auto& block : blocks) u = block->Forward(u, {.dt = kDt});
      const at::Tensor part = LossOf(at::mm(u.hidden, ends.closing), step, rank);
      part.backward();
      loss += part.item<double>();
    }
    optimizer.Step(kClip);
    run.losses.push_back(loss);
  }
  return run;
}

TEST(LayerParallelOnTheMesh, IsOneRankWithoutMgrit) {
  const SerialTraining serial = SerialRun();
  for (const parallel::Strategy strategy : {parallel::Strategy::kDdp, parallel::Strategy::kZero1,
                                            parallel::Strategy::kZero2, parallel::Strategy::kFsdp}) {
    SCOPED_TRACE(std::string(parallel::Name(strategy)));
    const char* axis = strategy == parallel::Strategy::kDdp ? "dp_replicate" : "dp_shard";
    const auto mesh = *comm::DeviceMesh::Create(World(), {{axis, kDataRanks}, {"lp", kLayerRanks}});
    LayerParallelRun run(strategy, mesh);
    for (int step = 0; step < kSteps; ++step) {
      double loss = run.Step(step);
      World().AllReduce(comm::BufferOf(absl::MakeSpan(&loss, 1)));  // once on each lp rank
      EXPECT_NEAR(loss / kLayerRanks / serial.losses[step], 1, kTolerance) << "loss of step " << step;
    }
    ExpectParameters(run.engine(), serial.parameters, kTolerance);
  }
}

}  // namespace
}  // namespace plait::parity
