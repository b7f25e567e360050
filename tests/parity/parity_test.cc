// The parity matrix: every strategy, with accumulation, clipping, activation checkpoints, offload and tiling,
// for every model, against one rank with the same batch: the losses of 20 steps of AdamW and every parameter.
//
// Bounds: float64 1e-12, as rounding of 2^-53 grows some 1000-fold in 20 steps through AdamW's division;
// float32 by the same growth 1e-5 from 2^-24 would be 6e-5, but what is measured is below 1e-5.
#include <gtest/gtest.h>

#include "comm/testing/world.h"
#include "tests/parity/trajectory.h"

namespace plait::parity {
namespace {

using comm::testing::World;
using parallel::Strategy;

// Strategies on the mesh of this world.
std::vector<Setting> Meshes() {
  const int n = World().size();
  std::vector<Setting> meshes = {{Strategy::kDdp, n, 1}};
  for (const Strategy strategy : {Strategy::kZero1, Strategy::kZero2, Strategy::kFsdp}) {
    meshes.push_back({strategy, 1, n});
  }
  if (n == 8) meshes.push_back({Strategy::kFsdp, 2, 4});  // HSDP
  return meshes;
}

std::vector<Setting> Variants(const Setting& mesh) {
  std::vector<Setting> variants(5, mesh);
  variants[1].passes = 2;
  variants[2].passes = 2;
  variants[2].reduce_each = true;
  variants[3].checkpoints_activations = true;
  variants[4].offloads = true;
  if (mesh.strategy == Strategy::kFsdp) {
    variants[4].offloads_parameters = true;
    variants.push_back(variants[1]);
    variants.back().offloads_parameters = variants.back().checkpoints_activations = true;
  }
  return variants;
}

TEST(ParityTest, EveryStrategyAndModelInFloat64) {
  for (const ModelKind kind : kModelKinds) {
    const Trajectory serial = SerialTrajectory(kind, at::kDouble);
    for (const Setting& mesh : Meshes()) {
      for (const Setting& setting : Variants(mesh)) {
        SCOPED_TRACE(NameOf(kind) + ", " + TextOf(setting));
        EXPECT_LE(LargestDifference(ParallelTrajectory(kind, at::kDouble, setting, World()), serial), 1e-12);
      }
    }
  }
}

TEST(ParityTest, EveryStrategyAndModelInFloat32) {
  for (const ModelKind kind : kModelKinds) {
    const Trajectory serial = SerialTrajectory(kind, at::kFloat);
    for (const Setting& mesh : Meshes()) {
      SCOPED_TRACE(NameOf(kind) + ", " + TextOf(mesh));
      EXPECT_LE(LargestDifference(ParallelTrajectory(kind, at::kFloat, mesh, World()), serial), 1e-5);
    }
  }
}

TEST(ParityTest, TheSameRunTwiceGivesTheSameBits) {
  for (const Setting& mesh : Meshes()) {
    SCOPED_TRACE(TextOf(mesh));
    const Trajectory first = ParallelTrajectory(ModelKind::kGpt, at::kFloat, mesh, World());
    EXPECT_EQ(LargestDifference(ParallelTrajectory(ModelKind::kGpt, at::kFloat, mesh, World()), first), 0);
  }
}

void ExpectTheSameBits(const Setting& offloaded) {
  SCOPED_TRACE(TextOf(offloaded));
  Setting memory = offloaded;
  memory.offloads = memory.offloads_masters = memory.offloads_parameters = false;
  const Trajectory mine = ParallelTrajectory(ModelKind::kGpt, at::kFloat, offloaded, World());
  const Trajectory expected = ParallelTrajectory(ModelKind::kGpt, at::kFloat, memory, World());
  EXPECT_EQ(mine.losses, expected.losses);
  for (std::size_t i = 0; i < expected.parameters.size(); ++i) {
    EXPECT_TRUE(mine.parameters[i].equal(expected.parameters[i])) << "parameter " << i;
  }
}

TEST(ParityTest, MastersAndParametersInAFileGiveTheSameBits) {
  for (Setting setting : Meshes()) {
    setting.offloads = setting.offloads_masters = true;
    setting.compute_type = at::kBFloat16;
    ExpectTheSameBits(setting);
    if (setting.strategy != Strategy::kFsdp) continue;
    setting.offloads_parameters = true;
    ExpectTheSameBits(setting);
    setting.compute_type = at::kFloat;
    setting.passes = 2;
    ExpectTheSameBits(setting);
  }
}

// Were the matrix blind to these, it would prove nothing.
TEST(ParityTest, FaultsAreNoticed) {
  const int n = World().size();
  struct Fault {
    Mutation mutation;
    Setting setting;
    const char* name;
  };
  const Setting replicas = {Strategy::kDdp, n, 1}, shards = {Strategy::kFsdp, 1, n};
  const Fault faults[] = {{Mutation::kDroppedAllReduce, replicas, "dropped all-reduce"},
                          {Mutation::kNormCountedTwice, replicas, "norm counted twice"},
                          {Mutation::kNormCountedTwice, shards, "norm counted twice"},
                          {Mutation::kWrongNormalizer, replicas, "wrong normalizer"},
                          {Mutation::kWrongNormalizer, shards, "wrong normalizer"},
                          {Mutation::kStaleShard, replicas, "stale shard"},
                          {Mutation::kStaleShard, shards, "stale shard"}};
  for (const ModelKind kind : kModelKinds) {
    const Trajectory serial = SerialTrajectory(kind, at::kDouble);
    for (Fault fault : faults) {
      if (fault.mutation == Mutation::kStaleShard && fault.setting.replicas > 1)
        continue;  // one rank's alone
      SCOPED_TRACE(NameOf(kind) + ", " + fault.name);
      fault.setting.mutation = fault.mutation;
      // Above both bounds of the matrix.
      EXPECT_GT(LargestDifference(ParallelTrajectory(kind, at::kDouble, fault.setting, World()), serial),
                1e-4);
    }
  }
}

}  // namespace
}  // namespace plait::parity
