// Resumed runs: bitwise identical on the same mesh, identical to rounding on every other one.
#include "parallel/training_state/training_state.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <filesystem>

#include "base/testing/nan_is_infinite.h"
#include "comm/device_mesh.h"
#include "comm/testing/world.h"
#include "parallel/checkpoint/save.h"
#include "parallel/sharding/testing_model.h"

namespace plait::parallel {
namespace {

using comm::testing::World;
using ::testing::HasSubstr;

struct Mesh {
  Strategy strategy;
  int replicas, shards;
};

std::vector<Mesh> Meshes() {
  std::vector<Mesh> meshes = {{Strategy::kDdp, World().size(), 1}};
  for (int shards = 2; shards <= World().size(); shards *= 2) {
    meshes.push_back({Strategy::kZero1, World().size() / shards, shards});
    meshes.push_back({Strategy::kFsdp, World().size() / shards, shards});
  }
  return meshes;
}

// A model, its engine and its optimizer, as a program holds them.
struct Program {
  explicit Program(const Mesh& mesh, double offset = 0, const StateStoreOptions& place = {},
                   const DataParallelOptions& other = {})
      : model(at::kDouble), type(other.compute_type == at::kFloat ? at::kFloat : at::kDouble) {
    if (offset != 0) {
      const at::NoGradGuard no_grad;
      for (models::ParameterUnit& unit : model.units) {
        for (models::ParameterSpec& p : unit.parameters) p.tensor.add_(offset);
      }
    }
    const auto device_mesh =
        comm::DeviceMesh::Create(World(), {{"dp_replicate", mesh.replicas}, {"dp_shard", mesh.shards}});
    DataParallelOptions options = other;
    options.strategy = mesh.strategy;
    dp = *DataParallel::Create(*device_mesh, model.units, options);
    model.run = [this](std::size_t block, const models::BlockForward& forward, const models::BlockState& x) {
      return dp->Run(block, forward, x);
    };
    optimizer = *ShardedOptimizer::Create(*dp, {.lr = 0.02, .weight_decay = 0.1}, place);
  }

  // Of the same 4 samples, whatever the ranks.
  void Train(int from, int to) {
    for (int step = from; step < to; ++step) {
      const std::int64_t share = 4 / World().size();
      const auto samples = [&](std::uint64_t seed) {
        return TestNumbers({4, TestingModel::kWidth}, seed + 10 * step, type)
            .narrow(0, World().rank() * share, share);
      };
      dp->Backward(dp->Forward([&] { return model.Loss(samples(1), samples(2)) / 4; }));
      EXPECT_TRUE(optimizer->Step({.clip_norm = 0.5}).status.ok());
    }
  }

  std::vector<at::Tensor> Parameters() {
    std::vector<at::Tensor> all;
    dp->VisitUnsharded([&](const models::ParameterUnit& unit) {
      for (const models::ParameterSpec& p : unit.parameters) all.push_back(p.tensor.detach().clone());
    });
    return all;
  }

  void Save(const std::string& root, int step) {
    const auto pieces = PiecesOf(*dp, optimizer.get());
    const auto saved =
        SaveCheckpoint(World(), root, step, *pieces, {.integers = {{"optimizer.step", optimizer->steps()}}});
    EXPECT_TRUE(saved.ok()) << saved.status();
  }
  absl::Status Load(const std::string& folder) {
    absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(folder);
    return checkpoint.ok() ? Restore(*checkpoint, *dp, optimizer.get()) : checkpoint.status();
  }

  TestingModel model;
  at::ScalarType type;  // of samples
  std::unique_ptr<DataParallel> dp;
  std::unique_ptr<ShardedOptimizer> optimizer;
};

std::string FreshFolder(const std::string& name) {
  const std::string folder = ::testing::TempDir() + "/" + name;
  if (World().rank() == 0) std::filesystem::remove_all(folder);
  World().Barrier();
  return folder;
}

double LargestDifference(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = (a[i] - b[i]).abs().max().item<double>();
    largest = std::max(largest, base::NanIsInfinite(difference / b[i].abs().max().item<double>()));
  }
  return largest;
}

TEST(TrainingStateTest, GoesOnAsIfItHadNotStopped) {
  for (const Mesh& saver : Meshes()) {
    const std::string root = FreshFolder("state");
    Program whole(saver);
    whole.Train(0, 3);
    whole.Save(root, 3);
    whole.Train(3, 6);
    const std::vector<at::Tensor> expected = whole.Parameters();
    for (const Mesh& loader : Meshes()) {
      SCOPED_TRACE(std::string(Name(saver.strategy)) + std::to_string(saver.shards) + " to " +
                   std::string(Name(loader.strategy)) + std::to_string(loader.shards));
      Program resumed(loader, /*offset=*/1);  // with other initial values, which Load replaces
      const absl::Status loaded = resumed.Load(root + "/step-000000003");
      EXPECT_TRUE(loaded.ok()) << loaded;
      EXPECT_EQ(resumed.optimizer->steps(), 3);
      resumed.Train(3, 6);
      const std::vector<at::Tensor> parameters = resumed.Parameters();
      const bool same_mesh = loader.strategy == saver.strategy && loader.shards == saver.shards;
      // Another mesh adds up in another order.
      EXPECT_LE(LargestDifference(parameters, expected), same_mesh ? 0 : 1e-12);
    }
    World().Barrier();
  }
}

TEST(TrainingStateTest, MomentsInAFileAreSavedAndLoadedToo) {
  const Mesh mesh = Meshes().back();
  const StateStoreOptions file = {.target = OffloadTarget::kFile, .folder = ::testing::TempDir()};
  const std::string root = FreshFolder("offloaded");
  Program whole(mesh, 0, file), memory(mesh);
  whole.Train(0, 3);
  memory.Train(0, 6);
  whole.Save(root, 3);
  Program resumed(mesh, 1, file);
  EXPECT_TRUE(resumed.Load(root + "/step-000000003").ok());
  resumed.Train(3, 6);
  EXPECT_EQ(LargestDifference(resumed.Parameters(), memory.Parameters()), 0);
  whole.dp->WaitForParameters();
}

// Masters saved from a file are restored to every placement, and so are the parameters made from them.
TEST(TrainingStateTest, MastersInAFileAreSavedAndLoadedToo) {
  const StateStoreOptions file = {.target = OffloadTarget::kFile, .folder = ::testing::TempDir()};
  const DataParallelOptions mixed = {.compute_type = at::kFloat},
                            masters = {.compute_type = at::kFloat, .masters_offload = file},
                            all = {.compute_type = at::kFloat,
                                   .masters_offload = file,
                                   .offloads_parameters = true};
  for (const Mesh& mesh : Meshes()) {
    const std::string root = FreshFolder("offloaded_masters");
    Program memory(mesh, 0, {}, mixed), whole(mesh, 0, file, masters);
    memory.Train(0, 6);
    whole.Train(0, 3);
    whole.Save(root, 3);
    const bool shards = mesh.strategy == Strategy::kFsdp;
    for (const DataParallelOptions& loader : {mixed, masters, shards ? all : masters}) {
      Program resumed(mesh, 1, file, loader);
      EXPECT_TRUE(resumed.Load(root + "/step-000000003").ok());
      resumed.Train(3, 6);
      EXPECT_EQ(LargestDifference(resumed.Parameters(), memory.Parameters()), 0);
    }
    whole.dp->WaitForParameters();
    World().Barrier();
  }
}

// Declared by a piece without elements; a checkpoint without it would not be of this model.
TEST(TrainingStateTest, ParametersWithoutElementsAreSavedToo) {
  for (const Mesh& mesh : Meshes()) {
    const std::string root = FreshFolder("no_elements");
    TestingModel model(at::kDouble);
    model.units.push_back(
        models::MakeUnit("empty", {{"empty", at::empty({0, 3}, at::kDouble).requires_grad_(true)}}));
    const auto device_mesh =
        comm::DeviceMesh::Create(World(), {{"dp_replicate", mesh.replicas}, {"dp_shard", mesh.shards}});
    const auto dp = *DataParallel::Create(*device_mesh, model.units, {.strategy = mesh.strategy});
    ShardedOptimizer optimizer(*dp, {});
    const auto pieces = PiecesOf(*dp, &optimizer);
    const auto saved = SaveCheckpoint(World(), root, 1, *pieces, {.integers = {{"optimizer.step", 0}}});
    ASSERT_TRUE(saved.ok()) << saved.status();
    absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(saved->folder);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const absl::Status restored = Restore(*checkpoint, *dp, &optimizer);
    EXPECT_TRUE(restored.ok()) << restored;
    dp->WaitForParameters();
    World().Barrier();
  }
}

TEST(TrainingStateTest, AnotherArchitectureIsToldOnAllRanks) {
  const std::string root = FreshFolder("other");
  Program program(Meshes().back());
  program.Train(0, 1);
  program.Save(root, 1);
  program.dp->WaitForParameters();
  absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(root + "/step-000000001");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  TestingModel other(at::kDouble);
  other.units[1].parameters[0].name = "block.0.gain";
  const auto device_mesh =
      comm::DeviceMesh::Create(World(), {{"dp_replicate", 1}, {"dp_shard", World().size()}});
  const auto dp = *DataParallel::Create(*device_mesh, other.units, {.strategy = Strategy::kFsdp});
  const absl::Status status = Restore(*checkpoint, *dp, nullptr);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("block.0.gain"));
}

}  // namespace
}  // namespace plait::parallel
