// The plan of an engine's buffers against what the engine counted in three steps.
#include <ATen/TensorOperators.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tanh.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "comm/testing/world.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/plan/memory_plan.h"
#include "parallel/sharding/data_parallel.h"

namespace plait::parallel {
namespace {

constexpr std::int64_t kWidth = 33;
constexpr int kBlocks = 8;

std::vector<models::ParameterUnit> Units() {
  const auto parameter = [](std::vector<std::int64_t> sizes) {
    return at::randn(sizes, at::kFloat).mul_(0.1).requires_grad_(true);
  };
  std::vector<models::ParameterUnit> units = {
      models::MakeUnit("root", {{"root.weight", parameter({kWidth, kWidth})}})};
  for (int block = 0; block < kBlocks; ++block) {
    const std::string name = "block." + std::to_string(block);
    units.push_back(models::MakeUnit(
        name, {{name + ".weight", parameter({kWidth, kWidth})}, {name + ".bias", parameter({kWidth})}},
        block));
  }
  return units;
}

at::Tensor Loss(DataParallel& dp, const std::vector<models::ParameterUnit>& units, at::Tensor x) {
  x = at::mm(x, units[0].parameters[0].tensor);
  for (std::size_t block = 0; block < kBlocks; ++block) {
    const auto& p = units[block + 1].parameters;
    const auto forward = [&p](const models::BlockState& in) {
      return models::BlockState{at::tanh(at::mm(in.hidden, p[0].tensor) + p[1].tensor)};
    };
    x = dp.Run(block, forward, {x}).hidden;
  }
  return (x * x).sum();
}

void ExpectPlanHolds(Strategy strategy, at::ScalarType compute_type,
                     OffloadTarget masters_offload = OffloadTarget::kMemory,
                     bool offloads_parameters = false) {
  SCOPED_TRACE(std::string(Name(strategy)) + " " + toString(compute_type) + ", masters in " +
               std::string(Name(masters_offload)) + (offloads_parameters ? ", parameters offloaded" : ""));
  const comm::Communicator& world = comm::testing::World();
  const bool ddp = strategy == Strategy::kDdp;
  const auto mesh = *comm::DeviceMesh::Create(world, {{ddp ? "dp_replicate" : "dp_shard", world.size()}});
  const std::vector<models::ParameterUnit> units = Units();
  auto dp =
      DataParallel::Create(mesh, units,
                           {.strategy = strategy,
                            .compute_type = compute_type,
                            .masters_offload = {.target = masters_offload, .folder = ::testing::TempDir()},
                            .offloads_parameters = offloads_parameters});
  ASSERT_TRUE(dp.ok()) << dp.status();
  const auto optimizer =
      *ShardedOptimizer::Create(**dp, {}, {.target = masters_offload, .folder = ::testing::TempDir()});
  for (int step = 0; step < 3; ++step) {
    const at::Tensor loss = (*dp)->Forward([&] {
      return Loss(**dp, units, at::randn({4, kWidth}, compute_type));
    });
    (*dp)->Backward(loss);
    EXPECT_TRUE(optimizer->Step().status.ok());
  }
  (*dp)->WaitForParameters();
  const int shard_ranks = ddp ? 1 : world.size();
  const MemoryPlan plan = PlanMemory({.units = PlanUnits(units, shard_ranks),
                                      .strategy = strategy,
                                      .shard_ranks = shard_ranks,
                                      .compute_type = compute_type,
                                      .moments_offload = masters_offload,
                                      .masters_offload = masters_offload,
                                      .offloads_parameters = offloads_parameters});
  const std::int64_t held = (*dp)->peak_bytes();
  EXPECT_LE(held, plan.buffer_bytes()) << Name(strategy);
  EXPECT_EQ(optimizer->moment_bytes(), plan.moment_bytes) << Name(strategy);
  // The plan counts three blocks' gradients in flight; the run may have held as few as one.
  const bool in_work = ShardsGradients(strategy) && shard_ranks > 1;
  const std::int64_t block_bytes = plan.request.units[1].count * 4;
  EXPECT_GE(held, plan.buffer_bytes() - (in_work ? 2 * block_bytes : 0)) << Name(strategy);
}

TEST(MemoryPlan, HoldsForEveryStrategy) {
  for (const Strategy strategy : {Strategy::kDdp, Strategy::kZero1, Strategy::kZero2, Strategy::kFsdp}) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) ExpectPlanHolds(strategy, type);
  }
}

TEST(MemoryPlan, HoldsForWhatLivesInAFileOrOnTheHost) {
  for (const OffloadTarget place : {OffloadTarget::kHost, OffloadTarget::kFile}) {
    for (const Strategy strategy : {Strategy::kDdp, Strategy::kZero1, Strategy::kZero2, Strategy::kFsdp}) {
      ExpectPlanHolds(strategy, at::kBFloat16, place);
    }
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      ExpectPlanHolds(Strategy::kFsdp, type, place, /*offloads_parameters=*/true);
    }
  }
}

}  // namespace
}  // namespace plait::parallel
