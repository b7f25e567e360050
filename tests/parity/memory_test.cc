// Bytes that ranks hold against the formulas: fp32 AdamW takes, per parameter, 16 bytes (ddp), 8 + 8/N
// (zero1), 4 + 12/N (zero2), 16/N (fsdp), and the unit in work where states are sharded: its parameters and
// its gradients.
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

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

double Formula(Strategy strategy, double n) {
  const double gradients_in_work = n > 1 ? 4 * kUnit : 0;
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
  for (const Strategy strategy : {Strategy::kDdp, Strategy::kZero1, Strategy::kZero2, Strategy::kFsdp}) {
    SCOPED_TRACE(parallel::Name(strategy));
    const bool shards = strategy != Strategy::kDdp;
    const auto mesh =
        comm::DeviceMesh::Create(World(), {{"dp_replicate", shards ? 1 : n}, {"dp_shard", shards ? n : 1}});
    const mlp::Mlp model({.widths = std::vector<std::int64_t>(kLayers + 1, kWidth)}, at::kMeta);
    std::vector<parallel::ParameterUnit> units;
    for (const models::ParameterUnit& unit : model.units()) {
      units.push_back({unit.name, unit.parameters, /*root=*/units.empty()});
    }
    const auto dp = *parallel::DataParallel::Create({mesh->axis("dp_replicate"), mesh->axis("dp_shard")},
                                                    units, {.strategy = strategy, .prefetch = false},
                                                    [&](std::size_t unit) { model.ResetParameters(unit); });
    model.set_block_runner([&](std::size_t block, const models::BlockForward& forward, const at::Tensor& x) {
      return dp->Run(block, forward, x);
    });
    parallel::ShardedOptimizer optimizer(*dp, {});
    for (int step = 0; step < 3; ++step) {
      dp->Backward(dp->Forward([&] { return model.Forward(at::ones({2, kWidth})).sum(); }));
      optimizer.Step();
    }
    dp->WaitForParameters();
    const auto held = static_cast<double>(dp->peak_bytes() + optimizer.moment_bytes());
    EXPECT_LE(held, 1.05 * Formula(strategy, n));
    EXPECT_GE(held, 0.95 * Formula(strategy, n));
  }
}

}  // namespace
}  // namespace plait::parity
