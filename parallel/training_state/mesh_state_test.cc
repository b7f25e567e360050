// Parameters that are split along tp, distributed over pp, replicated and partial: saved on every mesh and loaded on
// every other one, with the optimizer's moments. The reference is the whole tensor, which every rank can compute.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "comm/device_mesh.h"
#include "comm/testing/world.h"
#include "parallel/checkpoint/save.h"
#include "parallel/sharding/testing_model.h"
#include "parallel/training_state/training_state.h"

namespace plait::parallel {
namespace {

using comm::testing::World;
using models::ParameterRole;
using models::ParameterSpec;
using models::ParameterUnit;

constexpr std::int64_t kRows = 3, kColumns = 8;
constexpr int kBlocks = 4;

struct Setting {
  Strategy strategy;
  int pp, replicas, shards, tp;
};

std::vector<Setting> Settings() {
  std::vector<Setting> settings;
  const int n = World().size();
  for (int pp = 1; pp <= n; pp *= 2) {
    for (int tp = 1; pp * tp <= n; tp *= 2) {
      const int data = n / pp / tp;
      settings.push_back({Strategy::kFsdp, pp, 1, data, tp});
      if (data > 1) settings.push_back({Strategy::kDdp, pp, data, 1, tp});
    }
  }
  return settings;
}

std::string TextOf(const Setting& s) {
  return std::string(Name(s.strategy)) + " pp" + std::to_string(s.pp) + " dp" + std::to_string(s.replicas) +
         "x" + std::to_string(s.shards) + " tp" + std::to_string(s.tp);
}

// A fused weight (3 kRows, kColumns) whose three parts are split by columns.
at::Tensor WholeWeight(int block) {
  return at::arange(3 * kRows * kColumns, at::kDouble).view({3 * kRows, kColumns}) + 1000 * block;
}
at::Tensor WholeNorm(int block) { return at::arange(5, at::kDouble) + 1000 * block + 500; }

ParameterSpec Weight(int block, const Setting& s, int tp) {
  const std::int64_t width = kColumns / s.tp;
  std::vector<at::Tensor> parts;
  models::Placement placement = {.shape = {3 * kRows, kColumns}};
  for (std::int64_t part = 0; part < 3; ++part) {
    placement.boxes.push_back({.begin = {part * kRows, tp * width}, .size = {kRows, width}});
    parts.push_back(WholeWeight(block).narrow(0, part * kRows, kRows).narrow(1, tp * width, width));
  }
  return {.name = "block." + std::to_string(block) + ".weight",
          .tensor = at::cat(parts).requires_grad_(true),
          .placement = placement};
}

// The units of this rank; blocks are distributed over pp.
std::vector<ParameterUnit> Units(const Setting& s, const comm::DeviceMesh& mesh) {
  std::vector<ParameterUnit> units;
  const int per_stage = kBlocks / s.pp, first = mesh.Coordinates()[0] * per_stage;
  for (int block = first; block < first + per_stage; ++block) {
    const std::string name = "block." + std::to_string(block);
    ParameterUnit unit = {.name = name, .parameters = {}, .block = block - first};
    unit.parameters.push_back(Weight(block, s, mesh.Coordinates()[3]));
    unit.parameters.push_back({.name = name + ".norm",
                               .tensor = WholeNorm(block).requires_grad_(true),
                               .decays = false,
                               .placement = {.replicated = {"tp"}}});
    unit.parameters.push_back({.name = name + ".count",
                               .tensor = at::full({}, block, at::kLong),
                               .role = ParameterRole::kBuffer,
                               .placement = {.replicated = {"tp"}}});
    units.push_back(std::move(unit));
  }
  return units;
}

struct Program {
  explicit Program(const Setting& setting)
      : s(setting),
        mesh(*comm::DeviceMesh::Create(
            World(), {{"pp", s.pp}, {"dp_replicate", s.replicas}, {"dp_shard", s.shards}, {"tp", s.tp}})),
        units(Units(s, mesh)),
        dp(*DataParallel::Create(mesh, units, {.strategy = s.strategy})),
        optimizer(*dp, {.kind = OptimizerKind::kSgd, .lr = 1, .momentum = 0.5}) {}

  // Momentum becomes the gradient: the parameter itself, over the number of data ranks.
  void Step() {
    dp->Backward([&] {
      for (const ParameterUnit& unit : units) {
        for (const ParameterSpec& p : unit.parameters) {
          if (p.role != ParameterRole::kTrained) continue;
          dp->AddGradient(p.tensor, ValueOf(p) / (s.replicas * s.shards));
        }
      }
    });
    ASSERT_TRUE(optimizer.Step().status.ok());
  }

  // This rank's part of the whole tensor.
  at::Tensor ValueOf(const ParameterSpec& p) const {
    const int block = p.name[6] - '0';
    return p.name.ends_with("weight") ? Weight(block, s, mesh.Coordinates()[3]).tensor.detach()
                                      : WholeNorm(block);
  }

  Setting s;
  comm::DeviceMesh mesh;
  std::vector<ParameterUnit> units;
  std::unique_ptr<DataParallel> dp;
  ShardedOptimizer optimizer;
};

std::string FreshFolder(const std::string& name) {
  const std::string folder = ::testing::TempDir() + "/" + name;
  if (World().rank() == 0) std::filesystem::remove_all(folder);
  World().Barrier();
  return folder;
}

// After the step of a program: parameters minus their gradient are zero, momentum is the whole value.
void ExpectStateOfStep(Program& program) {
  program.dp->VisitUnsharded([&](const ParameterUnit& unit) {
    for (const ParameterSpec& p : unit.parameters) {
      const double expected = p.role == ParameterRole::kBuffer ? 7 + (p.name[6] - '0') : 0;
      EXPECT_TRUE(p.tensor.eq(expected).all().item<bool>()) << p.name << " is " << p.tensor;
    }
  });
  const absl::Status visited = program.optimizer.ForEachShard(
      /*changes=*/false, [&](std::size_t i, const std::vector<at::Tensor>& moments) {
        const Shard& shard = program.dp->shards()[i];
        for (const FlatSlice& slice : shard.layout->Slices(shard.rank)) {
          const at::Tensor whole = program.ValueOf(*shard.parameters[slice.parameter]).flatten();
          EXPECT_TRUE(moments[0]
                          .narrow(0, slice.shard_offset, slice.end - slice.begin)
                          .equal(whole.narrow(0, slice.begin, slice.end - slice.begin)))
              << shard.parameters[slice.parameter]->name;
        }
        return absl::OkStatus();
      });
  EXPECT_TRUE(visited.ok()) << visited;
}

TEST(MeshState, IsLoadedOnEveryOtherMesh) {
  for (const Setting& from : Settings()) {
    const std::string root = FreshFolder("mesh_state");
    Program program(from);
    program.Step();
    for (ParameterUnit& unit : program.units) unit.parameters[2].tensor.add_(7);
    const auto pieces = PiecesOf(*program.dp, &program.optimizer);
    ASSERT_TRUE(pieces.ok()) << pieces.status();
    const auto saved = SaveCheckpoint(World(), root, 1, *pieces, {.integers = {{"optimizer.step", 1}}});
    ASSERT_TRUE(saved.ok()) << saved.status();
    program.dp->WaitForParameters();
    for (const Setting& to : Settings()) {
      SCOPED_TRACE(TextOf(from) + " to " + TextOf(to));
      Program other(to);
      absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(root + "/step-000000001");
      ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
      const absl::Status restored = Restore(*checkpoint, *other.dp, &other.optimizer);
      ASSERT_TRUE(restored.ok()) << restored;
      EXPECT_EQ(other.optimizer.steps(), 1);
      ExpectStateOfStep(other);
    }
  }
}

}  // namespace
}  // namespace plait::parallel
