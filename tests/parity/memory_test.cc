// Bytes that ranks hold against the formulas: fp32 AdamW takes, per parameter, 16 bytes (ddp), 8 + 8/N
// (zero1), 4 + 12/N (zero2), 16/N (fsdp), and the unsharded unit where states are sharded: its parameters and
// its gradients; with prefetch the next unit's parameters and the gradients on their way. With moments and
// parameters in a file: two buffers of the largest unit for each, and what works. Counted twice: by the
// engine, and by the allocator of all tensors.
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "comm/device_mesh.h"
#include "comm/testing/world.h"
#include "models/mlp/mlp.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/sharding/data_parallel.h"
#include "tests/parity/counting_allocator.h"

namespace plait::parity {
namespace {

using comm::testing::World;
using parallel::Strategy;

constexpr std::int64_t kWidth = 64;
constexpr std::size_t kLayers = 30;
constexpr double kUnit = kWidth * kWidth + kWidth, kParameters = kLayers * kUnit;

constexpr std::int64_t kRows = 2;

struct Case {
  Strategy strategy = Strategy::kDdp;
  bool offloads = false;
  bool prefetch = false;
};

// Of the moments' slots and the parameters': 12 bytes per parameter of a unit's share, in whole blocks. They
// are no tensors' memory.
double FileBuffers(const Case& c, double n) {
  const auto in_blocks = [](double bytes) { return std::ceil(bytes / 4096) * 4096; };
  return c.offloads ? 2 * (in_blocks(8 * kUnit / n) + in_blocks(4 * kUnit / n)) : 0;
}

double StatesAndUnits(const Case& c, double n) {
  const double gradients = n > 1 ? 4 * kUnit * (c.prefetch ? 2 : 1) : 0;
  const double parameters = n > 1 || c.offloads ? 4 * kUnit * (c.prefetch ? 2 : 1) : 0;
  if (c.offloads) return 4 / n * kParameters + gradients + parameters;
  switch (c.strategy) {
    case Strategy::kDdp:
      return 16 * kParameters;
    case Strategy::kZero1:
      return (8 + 8 / n) * kParameters;
    case Strategy::kZero2:
      return (4 + 12 / n) * kParameters + gradients;
    case Strategy::kFsdp:
      return 16 / n * kParameters + gradients + parameters;
  }
  return 0;
}

// What autograd keeps: the input of each layer; in its backward, three more of these and the layer's
// gradients before they are in their buffer.
constexpr double kActivations = 4 * kRows * kWidth * (kLayers + 3) + 4 * kUnit;

struct Peak {
  double engine = 0, allocator = 0;
};

Peak Train(const Case& c) {
  CountingAllocator& tensors = CountingAllocator::Install();
  const std::int64_t before = tensors.live_bytes();
  tensors.ForgetPeak();
  const parallel::StateStoreOptions place = {
      .target = c.offloads ? parallel::OffloadTarget::kFile : parallel::OffloadTarget::kMemory,
      .folder = ::testing::TempDir()};
  const bool shards = c.strategy != Strategy::kDdp;
  const int n = World().size();
  const auto mesh =
      comm::DeviceMesh::Create(World(), {{"dp_replicate", shards ? 1 : n}, {"dp_shard", shards ? n : 1}});
  mlp::Mlp model({.widths = std::vector<std::int64_t>(kLayers + 1, kWidth)}, at::kMeta);
  const auto dp = *parallel::DataParallel::Create(*mesh, model.units(),
                                                  {.strategy = c.strategy,
                                                   .prefetch = c.prefetch,
                                                   .masters_offload = place,
                                                   .offloads_parameters = c.offloads},
                                                  [&](std::size_t unit) { model.ResetParameters(unit); });
  const models::BlockRunner run = [&](std::size_t block, const models::BlockState& input,
                                      const models::BlockContext& context) {
    const auto forward = [&](const models::BlockState& x) {
      return model.blocks()[block]->Forward(x, context);
    };
    return dp->Run(block, forward, input);
  };
  const auto optimizer = *parallel::ShardedOptimizer::Create(*dp, {}, place);
  for (int step = 0; step < 3; ++step) {
    dp->Backward(dp->Forward([&] {
      return models::RunOutput(model, {.inputs = at::ones({kRows, kWidth}), .targets = {}}, run).sum();
    }));
    EXPECT_TRUE(optimizer->Step().status.ok());
  }
  dp->WaitForParameters();
  return {.engine = static_cast<double>(dp->peak_bytes() + optimizer->moment_bytes()),
          .allocator = static_cast<double>(tensors.peak_bytes() - before)};
}

TEST(MemoryTest, BytesPerRankAreThoseOfTheFormulas) {
  const double n = World().size();
  for (const bool prefetch : {false, true}) {
    for (Case c : {Case{Strategy::kDdp}, Case{Strategy::kZero1}, Case{Strategy::kZero2},
                   Case{Strategy::kFsdp}, Case{.strategy = Strategy::kFsdp, .offloads = true}}) {
      c.prefetch = prefetch;
      SCOPED_TRACE(std::string(parallel::Name(c.strategy)) + (c.offloads ? ", offloaded" : "") +
                   (prefetch ? ", prefetch" : ""));
      const Peak peak = Train(c);
      const double states = StatesAndUnits(c, n), held = states + FileBuffers(c, n);
      // 5 %: each parameter of a buffer begins at a multiple of 64 bytes.
      EXPECT_LE(peak.engine, 1.05 * held);
      EXPECT_GE(peak.engine, 0.95 * held);
      EXPECT_LE(peak.allocator, 1.05 * states + kActivations);
      EXPECT_GE(peak.allocator, 0.95 * states + 4 * kRows * kWidth * kLayers);
    }
  }
}

}  // namespace
}  // namespace plait::parity
