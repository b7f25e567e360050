// The parity matrix: every strategy, with accumulation, clipping, activation checkpoints, offload and tiling,
// for every model, against one rank with the same batch: the losses of up to 20 steps of AdamW and every parameter.
#include <gtest/gtest.h>

#include "comm/testing/world.h"
#include "tests/parity/serial_adamw.h"
#include "tests/parity/trajectory.h"

namespace plait::parity {
namespace {

using comm::testing::World;
using parallel::Strategy;

// By how much training enlarges a small relative error of the parameters, in float64.
double Growth(ModelKind kind) {
  const Trajectory exact = SerialTrajectory(kind, at::kDouble);
  return LargestDifference(SerialTrajectory(kind, at::kDouble, kPerturbation), exact) / kPerturbation;
}

double Bound(ModelKind kind, at::ScalarType type) {
  return RoundingBound(Steps(kMostSteps), type, Growth(kind));
}

// Strategies on the mesh of this world.
std::vector<Setting> Meshes() {
  const int n = World().size();
  std::vector<Setting> meshes = {{Strategy::kDdp, n, 1}};
  for (const Strategy strategy : {Strategy::kZero1, Strategy::kZero2, Strategy::kFsdp}) {
    meshes.push_back({strategy, 1, n});
  }
  if (n >= 4) meshes.push_back({Strategy::kFsdp, 2, n / 2});  // HSDP
  return meshes;
}

std::vector<Setting> Variants(const Setting& mesh) {
  std::vector<Setting> variants(5, mesh);
  variants[1].passes = 2;
  variants[2].passes = 2;
  variants[2].reduce_each = true;
  variants[3].checkpoints_activations = true;
  variants[4].offloads = true;
  if (ShardsParameters(mesh.strategy)) {
    variants[4].offloads_parameters = true;
    variants.push_back(variants[1]);
    variants.back().offloads_parameters = variants.back().checkpoints_activations = true;
  }
  return variants;
}

bool IsHsdp(const Setting& setting) { return setting.replicas > 1 && setting.shards > 1; }

void ExpectParityInFloat64(bool hsdp) {
  for (const ModelKind kind : kModelKinds) {
    const Trajectory serial = SerialTrajectory(kind, at::kDouble);
    const double bound = Bound(kind, at::kDouble);
    EXPECT_LE(bound, 1e-12);
    for (const Setting& mesh : Meshes()) {
      if (IsHsdp(mesh) != hsdp) continue;
      for (const Setting& setting : Variants(mesh)) {
        SCOPED_TRACE(NameOf(kind) + ", " + TextOf(setting));
        const double difference =
            LargestDifference(ParallelTrajectory(kind, at::kDouble, setting, World()), serial);
        EXPECT_LE(difference, bound);
      }
    }
  }
}

TEST(ParityTest, EveryStrategyAndModelInFloat64) { ExpectParityInFloat64(/*hsdp=*/false); }

// Alone, because tests/nodes runs it between nodes.
TEST(ParityTest, HsdpInFloat64) { ExpectParityInFloat64(/*hsdp=*/true); }

TEST(ParityTest, EveryStrategyAndModelInFloat32) {
  for (const ModelKind kind : kModelKinds) {
    const Trajectory serial = SerialTrajectory(kind, at::kFloat);
    const double bound = Bound(kind, at::kFloat);
    for (const Setting& mesh : Meshes()) {
      SCOPED_TRACE(NameOf(kind) + ", " + TextOf(mesh));
      EXPECT_LE(LargestDifference(ParallelTrajectory(kind, at::kFloat, mesh, World()), serial), bound);
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
    if (!ShardsParameters(setting.strategy)) continue;
    setting.offloads_parameters = true;
    ExpectTheSameBits(setting);
    setting.compute_type = at::kFloat;
    setting.passes = 2;
    ExpectTheSameBits(setting);
  }
}

// Were the matrix blind to these, it would prove nothing: each is above the bound of float32, and so of
// float64. Four ranks and more have both axes at once.
TEST(ParityTest, FaultsAreNoticed) {
  const int n = World().size();
  std::vector<Setting> meshes = {{Strategy::kFsdp, 2, n / 2}};
  if (n < 4) meshes = {{Strategy::kDdp, n, 1}, {Strategy::kFsdp, 1, n}};
  for (const ModelKind kind : kModelKinds) {
    const Trajectory serial = SerialTrajectory(kind, at::kDouble);
    const double bound = Bound(kind, at::kFloat);
    for (Setting setting : meshes) {
      for (const Fault fault : kFaults) {
        if (!CanHave(fault, setting.replicas, setting.shards)) continue;
        setting.fault = fault;
        SCOPED_TRACE(NameOf(kind) + ", " + TextOf(setting));
        const double difference =
            LargestDifference(ParallelTrajectory(kind, at::kDouble, setting, World()), serial);
        EXPECT_GT(difference, bound);
      }
    }
  }
}

}  // namespace
}  // namespace plait::parity
