// Bytes that ranks hold against the formulas: fp32 AdamW takes, per parameter, 16 bytes (ddp), 8 + 8/N
// (zero1), 4 + 12/N (zero2), 16/N (fsdp), and the unit in work where states are sharded: its parameters and
// its gradients. With moments and parameters in a file: two buffers of the largest unit for each, and what
// works.
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

#include "comm/device_mesh.h"
#include "comm/testing/world.h"
#include "models/mlp/mlp.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/sharding/data_parallel.h"

namespace plait::parity {
namespace {

using comm::testing::World;
using parallel::Strategy;

constexpr std::int64_t kWidth = 64;
constexpr std::size_t kLayers = 30;
constexpr double kUnit = kWidth * kWidth + kWidth, kParameters = kLayers * kUnit;

// Of the moments' slots and the parameters': 12 bytes per parameter of a unit's share, in whole blocks.
double FileBuffers(double n) {
  const auto in_blocks = [](double bytes) { return std::ceil(bytes / 4096) * 4096; };
  return 2 * (in_blocks(8 * kUnit / n) + in_blocks(4 * kUnit / n));
}

double Formula(Strategy strategy, double n, bool offloads) {
  const double gradients_in_work = n > 1 ? 4 * kUnit : 0;
  if (offloads) return 4 / n * kParameters + FileBuffers(n) + gradients_in_work + 4 * kUnit;
  switch (strategy) {
    case Strategy::kDdp:
      return 16 * kParameters;
    case Strategy::kZero1:
      return (8 + 8 / n) * kParameters;
    case Strategy::kZero2:
      return (4 + 12 / n) * kParameters + gradients_in_work;
    case Strategy::kFsdp:
      return 16 / n * kParameters + gradients_in_work + (n > 1 ? 4 * kUnit : 0);
  }
  return 0;
}

TEST(MemoryTest, BytesPerRankAreThoseOfTheFormulas) {
  const int n = World().size();
  const std::pair<Strategy, bool> settings[] = {{Strategy::kDdp, false},
                                                {Strategy::kZero1, false},
                                                {Strategy::kZero2, false},
                                                {Strategy::kFsdp, false},
                                                {Strategy::kFsdp, true}};
  for (const auto& [strategy, offloads] : settings) {
    SCOPED_TRACE(std::string(parallel::Name(strategy)) + (offloads ? ", offloaded" : ""));
    const parallel::StateStoreOptions place = {
        .place = offloads ? parallel::StatePlace::kFile : parallel::StatePlace::kMemory,
        .folder = ::testing::TempDir()};
    const bool shards = strategy != Strategy::kDdp;
    const auto mesh =
        comm::DeviceMesh::Create(World(), {{"dp_replicate", shards ? 1 : n}, {"dp_shard", shards ? n : 1}});
    mlp::Mlp model({.widths = std::vector<std::int64_t>(kLayers + 1, kWidth)}, at::kMeta);
    std::vector<parallel::ParameterUnit> units;
    for (const models::ParameterUnit& unit : model.units()) {
      units.push_back({unit.name, {}, /*root=*/units.empty()});
      for (const models::ParameterSpec& parameter : unit.parameters) {
        units.back().parameters.emplace_back(parameter.name, parameter.tensor);
      }
    }
    const auto dp = *parallel::DataParallel::Create(
        {mesh->axis("dp_replicate"), mesh->axis("dp_shard")}, units,
        {.strategy = strategy, .prefetch = false, .masters_place = place, .offloads_parameters = offloads},
        [&](std::size_t unit) { model.ResetParameters(unit); });
    const models::BlockRunner run = [&](std::size_t block, const models::BlockState& input,
                                        const models::BlockContext& context) {
      const auto forward = [&](const at::Tensor& x) {
        return model.blocks()[block]->Forward({.hidden = x}, context).hidden;
      };
      return models::BlockState{.hidden = dp->Run(block, forward, input.hidden)};
    };
    const auto optimizer = *parallel::ShardedOptimizer::Create(*dp, {}, place);
    for (int step = 0; step < 3; ++step) {
      dp->Backward(dp->Forward([&] {
        return models::RunOutput(model, {.inputs = at::ones({2, kWidth}), .targets = {}}, run).sum();
      }));
      EXPECT_TRUE(optimizer->Step().status.ok());
    }
    dp->WaitForParameters();
    const auto held = static_cast<double>(dp->peak_bytes() + optimizer->moment_bytes());
    EXPECT_LE(held, 1.05 * Formula(strategy, n, offloads));
    EXPECT_GE(held, 0.95 * Formula(strategy, n, offloads));
  }
}

}  // namespace
}  // namespace plait::parity
