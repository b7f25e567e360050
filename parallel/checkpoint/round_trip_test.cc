// What some ranks have saved, any other number of ranks reads back in any other ranges.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "comm/testing/world.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/save.h"
#include "parallel/checkpoint/step_folders.h"
#include "parallel/checkpoint/testing/testing_tensors.h"

namespace plait::parallel {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// The same on all ranks, and empty.
std::string FreshFolder(const comm::Communicator& comm, const std::string& name) {
  const std::string folder = ::testing::TempDir() + "/" + name;
  if (comm.rank() == 0) fs::remove_all(folder);
  comm.Barrier();
  return folder;
}

CheckpointState StateOf(int rank) {
  return {.texts = {{"config", "{\"layers\": 12, \"dash\": \"\u2013\"}"}, {"empty", ""}},
          .integers = {{"sampler.position", std::int64_t{1} << 40}, {"optimizer.step", -3}},
          .rank_state = {{"rng.dp_shard", absl::StrCat(std::string("state\0of", 8), rank)}, {"none", ""}}};
}

TEST(RoundTrip, AnyNumberOfRanksToAnyOther) {
  const comm::Communicator& world = comm::testing::World();
  const std::vector<TensorSpec> tensors = testing::ManyTensors();
  for (int savers = 1; savers <= world.size(); savers *= 2) {
    const comm::Communicator comm = world.Split(world.rank() < savers ? 0 : -1, world.rank(), "savers");
    const std::string root = FreshFolder(world, absl::StrCat("any_", savers));
    if (world.rank() < savers) {
      const testing::OwnedPieces own = testing::RandomPieces(tensors, savers, world.rank(), savers, 0);
      const absl::StatusOr<SaveReport> saved =
          SaveCheckpoint(comm, root, 40 + savers, own.pieces, StateOf(world.rank()));
      EXPECT_TRUE(saved.ok()) << saved.status();
      EXPECT_EQ(saved.value_or(SaveReport()).folder, StepFolder(root, 40 + savers));
    }
    world.Barrier();
    absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(StepFolder(root, 40 + savers));
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    if (checkpoint.ok()) {
      EXPECT_EQ(checkpoint->step(), 40 + savers);
      EXPECT_EQ(checkpoint->ranks(), savers);
      EXPECT_TRUE(checkpoint->CheckTensors(tensors).ok()) << checkpoint->CheckTensors(tensors);
      // Every rank with ranges of its own.
      EXPECT_EQ(testing::FirstDifference(*checkpoint, tensors, 1000 + world.rank(), 0), "");
      EXPECT_TRUE(checkpoint->Verify().ok()) << checkpoint->Verify();
    }
    world.Barrier();
  }
}

TEST(RoundTrip, TextsNumbersAndTheStateOfEachRank) {
  const comm::Communicator& world = comm::testing::World();
  const std::string root = FreshFolder(world, "state");
  const testing::OwnedPieces own =
      testing::RandomPieces(testing::ManyTensors(), world.size(), world.rank(), 1, 0);
  EXPECT_TRUE(SaveCheckpoint(world, root, 7, own.pieces, StateOf(world.rank())).ok());
  const absl::StatusOr<std::string> latest = FindLatestCheckpoint(world, root);
  EXPECT_TRUE(latest.ok()) << latest.status();
  if (latest.ok()) {
    EXPECT_EQ(*latest, root + "/step-000000007");
    Checkpoint checkpoint = *Checkpoint::Open(*latest);
    EXPECT_EQ(checkpoint.texts(), StateOf(0).texts);
    EXPECT_EQ(checkpoint.integers(), StateOf(0).integers);
    EXPECT_EQ(*checkpoint.Text("config"), StateOf(0).texts["config"]);
    EXPECT_EQ(*checkpoint.Integer("optimizer.step"), -3);
    EXPECT_EQ(checkpoint.Text("absent").status().code(), absl::StatusCode::kNotFound);
    for (int rank = 0; rank < world.size(); ++rank) {
      EXPECT_EQ(*checkpoint.RankState(rank, "rng.dp_shard"), StateOf(rank).rank_state["rng.dp_shard"]);
      EXPECT_EQ(*checkpoint.RankState(rank, "none"), "");
    }
    EXPECT_EQ(checkpoint.RankState(0, "absent").status().code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(checkpoint.RankState(world.size(), "none").status().code(), absl::StatusCode::kNotFound);
  }
  world.Barrier();
}

TEST(RoundTrip, AMovedFolderIsAsGood) {
  const comm::Communicator& world = comm::testing::World();
  const std::string root = FreshFolder(world, "moved"), other = FreshFolder(world, "moved_to");
  const std::vector<TensorSpec> tensors = testing::ManyTensors();
  const testing::OwnedPieces own = testing::RandomPieces(tensors, world.size(), world.rank(), 2, 5);
  EXPECT_TRUE(SaveCheckpoint(world, root, 1, own.pieces, {}).ok());
  if (world.rank() == 0) fs::rename(root, other);
  world.Barrier();
  absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(StepFolder(other, 1));
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  if (checkpoint.ok()) {
    EXPECT_EQ(testing::FirstDifference(*checkpoint, tensors, 3, 5), "");
  }
  world.Barrier();
}

TEST(RoundTrip, TheSameStepAgainReplacesIt) {
  const comm::Communicator& world = comm::testing::World();
  const std::string root = FreshFolder(world, "again");
  const std::vector<TensorSpec> tensors = testing::ManyTensors();
  for (int version = 0; version < 2; ++version) {
    const testing::OwnedPieces own =
        testing::RandomPieces(tensors, world.size(), world.rank(), version, version);
    EXPECT_TRUE(SaveCheckpoint(world, root, 1, own.pieces, {}).ok());
  }
  Checkpoint checkpoint = *Checkpoint::Open(StepFolder(root, 1));
  EXPECT_EQ(testing::FirstDifference(checkpoint, tensors, 3, 1), "");
  EXPECT_FALSE(fs::exists(PartialFolder(root, 1)));
  world.Barrier();
}

// Only the chunks that a range touches are read: the others may be damaged.
TEST(RoundTrip, ARangeReadsItsChunksAlone) {
  const comm::Communicator& world = comm::testing::World();
  const std::string root = FreshFolder(world, "chunks");
  const TensorSpec tensor{"model", "x", at::kByte, {3, 1 << 20}};
  testing::OwnedPieces own;
  if (world.rank() == world.size() - 1) own.Add(tensor, 0, ElementsOf(tensor), 0);
  EXPECT_TRUE(SaveCheckpoint(world, root, 1, own.pieces, {}).ok());
  const std::string file = absl::StrCat(StepFolder(root, 1), "/rank-0000", world.size() - 1, ".h5");
  if (world.rank() == 0) {
    // A byte in the middle of the second of three chunks; the elements are nearly all of the file.
    const auto place = static_cast<std::streamoff>(fs::file_size(file) - (std::uintmax_t{3} << 19));
    std::FILE* bytes = std::fopen(file.c_str(), "r+");
    std::fseek(bytes, place, SEEK_SET);
    const int old = std::fgetc(bytes);
    std::fseek(bytes, place, SEEK_SET);
    std::fputc(old ^ 1, bytes);
    std::fclose(bytes);
  }
  world.Barrier();
  Checkpoint checkpoint = *Checkpoint::Open(StepFolder(root, 1));
  std::vector<std::byte> read(1 << 20);
  EXPECT_TRUE(checkpoint.Read("model/x", 0, 1 << 20, absl::MakeSpan(read)).ok());
  EXPECT_EQ(read, testing::ElementsOf(tensor, 0, 1 << 20, 0));
  EXPECT_TRUE(checkpoint.Read("model/x", 2 << 20, 3 << 20, absl::MakeSpan(read)).ok());
  EXPECT_EQ(read, testing::ElementsOf(tensor, 2 << 20, 3 << 20, 0));
  const absl::Status one =
      checkpoint.Read("model/x", (1 << 20) + 5, (1 << 20) + 6, absl::MakeSpan(read.data(), 1));
  EXPECT_EQ(one.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(one.message()), HasSubstr("model/x: checksum of elements [1048576, 2097152)"));
  EXPECT_EQ(checkpoint.Verify().code(), absl::StatusCode::kDataLoss);
  world.Barrier();
}

}  // namespace
}  // namespace plait::parallel
