// Failures on any rank: all ranks get the same error, and the last good checkpoint is unchanged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "comm/gathered_text.h"
#include "comm/testing/world.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/save.h"
#include "parallel/checkpoint/save_task.h"
#include "parallel/checkpoint/step_folders.h"
#include "parallel/checkpoint/testing/testing_tensors.h"

namespace plait::parallel {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<TensorSpec> Tensors() {
  return {{"model", "weight", at::kFloat, {300, 400}}, {"model", "bias", at::kFloat, {7}}};
}

const comm::Communicator& World() { return comm::testing::World(); }

std::string FreshRoot(const std::string& name) {
  const std::string root = ::testing::TempDir() + "/" + name;
  if (World().rank() == 0) fs::remove_all(root);
  World().Barrier();
  return root;
}

testing::OwnedPieces PiecesOf(std::int64_t step) {
  return testing::RandomPieces(Tensors(), World().size(), World().rank(), 1, static_cast<int>(step));
}

// The version of the elements is the step.
absl::Status Save(const std::string& root, std::int64_t step, const SaveOptions& options = {},
                  const SaveObserver& observer = {}) {
  const testing::OwnedPieces own = PiecesOf(step);
  absl::StatusOr<SaveTask> task =
      SaveTask::Prepare(World(), root, step, own.pieces, {.rank_state = {{"rng", "x"}}}, options, observer);
  if (!task.ok()) return task.status();
  std::vector<const void*> values;
  for (const LayoutPiece& piece : task->own_pieces()) values.push_back(own.pieces[piece.offered].data);
  return task->Commit(task->WriteValues(values)).status();
}

void ExpectSameOnAllRanks(const absl::Status& status) {
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
  for (const std::string& other : comm::GatherText(World(), status.ToString()))
    EXPECT_EQ(other, status.ToString());
}

void ExpectWhole(const std::string& root, std::int64_t step) {
  absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(StepFolder(root, step));
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  if (!checkpoint.ok()) return;
  EXPECT_EQ(testing::FirstDifference(*checkpoint, Tensors(), 1, static_cast<int>(step)), "");
}

// Complete checkpoints, and no folder of another kind.
void ExpectFolders(const std::string& root, const std::vector<std::int64_t>& steps) {
  EXPECT_EQ(*CompleteSteps(root), steps);
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    EXPECT_THAT(entry.path().string(), Not(HasSubstr("partial")));
  }
  World().Barrier();
}

TEST(SaveFailure, AtEveryPointOnEveryRank) {
  const std::string root = FreshRoot("points");
  EXPECT_TRUE(Save(root, 1).ok());
  for (const SavePoint point : {SavePoint::kFolderReady, SavePoint::kFileLaidOut, SavePoint::kValuesWritten,
                                SavePoint::kIndexWritten}) {
    const bool on_every_rank = point == SavePoint::kFileLaidOut || point == SavePoint::kValuesWritten;
    for (int rank = 0; rank < (on_every_rank ? World().size() : 1); ++rank) {
      const absl::Status failed = Save(root, 2, {.keep_last = 1}, [&](SavePoint passed) {
        return passed == point && World().rank() == rank ? absl::UnavailableError(absl::StrCat("rank ", rank))
                                                         : absl::OkStatus();
      });
      EXPECT_EQ(failed, absl::UnavailableError(absl::StrCat("rank ", rank)));
      ExpectSameOnAllRanks(failed);
      ExpectFolders(root, {1});
      EXPECT_EQ(*FindLatestCheckpoint(World(), root), StepFolder(root, 1));
      ExpectWhole(root, 1);
    }
  }
  EXPECT_TRUE(Save(root, 2, {.keep_last = 1}).ok());
  ExpectFolders(root, {2});
  ExpectWhole(root, 2);
}

// From the renaming on, the new checkpoint counts, and an error does not take it back.
TEST(SaveFailure, AfterTheRenaming) {
  const std::string root = FreshRoot("renamed");
  EXPECT_TRUE(Save(root, 1).ok());
  const absl::Status failed = Save(root, 2, {.keep_last = 1}, [](SavePoint passed) {
    return passed == SavePoint::kPublished ? absl::UnavailableError("no more") : absl::OkStatus();
  });
  ExpectSameOnAllRanks(failed);
  EXPECT_FALSE(failed.ok());
  ExpectFolders(root, {1, 2});
  ExpectWhole(root, 1);
  ExpectWhole(root, 2);
}

// A file size limit on one rank simulates a full disk: within HDF5's own structures, and within the elements.
TEST(SaveFailure, ADiskThatFillsOnOneRank) {
  const std::string root = FreshRoot("full");
  EXPECT_TRUE(Save(root, 1).ok());
  signal(SIGXFSZ, SIG_IGN);
  for (const rlim_t bytes : {rlim_t{100}, rlim_t{20000}}) {
    for (int rank = 0; rank < World().size(); ++rank) {
      rlimit before{};
      getrlimit(RLIMIT_FSIZE, &before);
      if (World().rank() == rank) {
        const rlimit limit{bytes, before.rlim_max};
        setrlimit(RLIMIT_FSIZE, &limit);
      }
      const absl::Status failed = Save(root, 2);
      setrlimit(RLIMIT_FSIZE, &before);
      EXPECT_EQ(failed.code(), absl::StatusCode::kResourceExhausted) << failed;
      EXPECT_THAT(std::string(failed.message()), HasSubstr(absl::StrCat("rank-0000", rank, ".h5")));
      ExpectSameOnAllRanks(failed);
      ExpectFolders(root, {1});
    }
  }
  ExpectWhole(root, 1);
  EXPECT_TRUE(Save(root, 2).ok()) << "after a full disk all is as before";
  ExpectWhole(root, 2);
}

TEST(SaveFailure, PiecesThatDoNotFitWriteNothing) {
  const std::string root = FreshRoot("layout");
  testing::OwnedPieces own = PiecesOf(1);
  if (World().rank() == World().size() - 1) own.Add(Tensors()[0], 10, 12, 1);
  const absl::Status twice = SaveCheckpoint(World(), root, 1, own.pieces, {}).status();
  EXPECT_EQ(twice.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(twice.message()), HasSubstr("model/weight, float32 (300, 400): elements [10, "));
  ExpectSameOnAllRanks(twice);
  if (World().size() > 1) {
    const absl::Status steps = Save(root, World().rank() == 1 ? 7 : 1);
    EXPECT_THAT(std::string(steps.message()), HasSubstr("rank 1 saves step 7 where rank 0 saves step 1"));
    ExpectSameOnAllRanks(steps);
  }
  EXPECT_FALSE(fs::exists(root));
  World().Barrier();
}

TEST(SaveFailure, TextsNamesAndFoldersThatCannotBeUsed) {
  const std::string root = FreshRoot("unusable");
  EXPECT_TRUE(Save(root, 1).ok());
  const testing::OwnedPieces own = PiecesOf(2);
  const absl::Status text =
      SaveCheckpoint(World(), root, 2, own.pieces, {.texts = {{"config", "\xff"}}}).status();
  EXPECT_EQ(text.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(text.message()), HasSubstr("not UTF-8"));
  ExpectSameOnAllRanks(text);
  CheckpointState state;
  if (World().rank() == World().size() - 1) state.rank_state["a/b"] = "";
  const absl::Status name = SaveCheckpoint(World(), root, 2, own.pieces, state).status();
  EXPECT_THAT(std::string(name.message()), HasSubstr("\"a/b\" cannot name"));
  ExpectSameOnAllRanks(name);
  ExpectFolders(root, {1});
  const std::string in_the_way = root + "/latest/below";
  const absl::Status folder = SaveCheckpoint(World(), in_the_way, 2, own.pieces, {}).status();
  EXPECT_THAT(std::string(folder.message()), HasSubstr(in_the_way));
  ExpectSameOnAllRanks(folder);
  ExpectWhole(root, 1);
  World().Barrier();
}

TEST(KeepLast, OlderOnesGoOthersStay) {
  const std::string root = FreshRoot("keep");
  for (const std::int64_t step : {10, 20, 30}) EXPECT_TRUE(Save(root, step).ok());
  ExpectFolders(root, {10, 20, 30});
  if (World().rank() == 0) {
    fs::create_directories(StepFolder(root, 5));  // incomplete: somebody is copying it here
    fs::create_directories(PartialFolder(root, 6));
    fs::create_directories(root + "/notes");
  }
  World().Barrier();
  EXPECT_TRUE(Save(root, 40, {.keep_last = 2}).ok());
  ExpectFolders(root, {30, 40});
  EXPECT_TRUE(fs::exists(StepFolder(root, 5)) && fs::exists(root + "/notes"));
  // A run that resumed from step 30 does not remove checkpoints of later steps.
  EXPECT_TRUE(Save(root, 35, {.keep_last = 1}).ok());
  ExpectFolders(root, {35, 40});
  EXPECT_EQ(*FindLatestCheckpoint(World(), root), StepFolder(root, 35));
  EXPECT_TRUE(Save(root, 40, {.keep_last = 1}).ok());
  ExpectFolders(root, {40});
  World().Barrier();
}

TEST(KeepLast, OfALinkedStepOnlyTheLinkGoes) {
  const std::string root = FreshRoot("linked"), elsewhere = FreshRoot("elsewhere");
  for (const std::int64_t step : {1, 2}) EXPECT_TRUE(Save(elsewhere, step).ok());
  if (World().rank() == 0) {
    fs::create_directories(root);
    for (const std::int64_t step : {1, 2})
      fs::create_directory_symlink(StepFolder(elsewhere, step), StepFolder(root, step));
  }
  World().Barrier();
  EXPECT_TRUE(Save(root, 3, {.keep_last = 2}).ok());
  ExpectFolders(root, {2, 3});
  ExpectWhole(elsewhere, 1);
  const absl::Status again = Save(root, 2);
  EXPECT_TRUE(again.ok()) << again;
  ExpectFolders(root, {2, 3});
  EXPECT_FALSE(fs::is_symlink(StepFolder(root, 2)));
  ExpectWhole(root, 2);
  ExpectWhole(elsewhere, 2);
  World().Barrier();
}

TEST(FindLatest, WhatLatestNamesElseTheLargestStepThatIsWhole) {
  const std::string root = FreshRoot("latest");
  EXPECT_EQ(FindLatestCheckpoint(World(), root).status().code(), absl::StatusCode::kNotFound);
  ExpectSameOnAllRanks(FindLatestCheckpoint(World(), root).status());
  for (const std::int64_t step : {1, 2, 3}) EXPECT_TRUE(Save(root, step).ok());
  const auto latest_with = [&](const std::string& text) {
    World().Barrier();
    if (World().rank() == 0) std::ofstream(root + "/latest") << text;
    return *FindLatestCheckpoint(World(), root);
  };
  EXPECT_EQ(latest_with("step-000000002\n"), StepFolder(root, 2));
  for (const char* broken : {"", "step-000000009\n", "step-00000000", "../latest", "\xff\xfe", "step--1"}) {
    EXPECT_EQ(latest_with(broken), StepFolder(root, 3)) << broken;
  }
  World().Barrier();
  if (World().rank() == 0) {
    fs::remove(StepFolder(root, 3) + "/rank-00000.h5");
    fs::rename(StepFolder(root, 2), PartialFolder(root, 2));
  }
  EXPECT_EQ(latest_with("step-000000003\n"), StepFolder(root, 1));
  World().Barrier();
}

// Steps 200 and 300 were given up when the run was resumed from step 100.
TEST(FindLatest, SmallerStepsThanTheDamagedLatestComeBeforeLargerOnes) {
  const std::string root = FreshRoot("abandoned");
  for (const std::int64_t step : {100, 200, 300, 150}) EXPECT_TRUE(Save(root, step).ok());
  absl::Status skipped = absl::UnknownError("");
  const auto latest_without = [&](std::int64_t step) {
    World().Barrier();
    if (World().rank() == 0) fs::remove(StepFolder(root, step) + "/rank-00000.h5");
    return *FindLatestCheckpoint(World(), root, World().rank() == 0 ? &skipped : nullptr);
  };
  EXPECT_EQ(latest_without(200), StepFolder(root, 150));
  EXPECT_TRUE(World().rank() > 0 || skipped.ok()) << skipped;
  EXPECT_EQ(latest_without(150), StepFolder(root, 100));
  if (World().rank() == 0) {
    EXPECT_THAT(std::string(skipped.message()), HasSubstr(StepFolder(root, 150) + "/rank-00000.h5"));
  }
  EXPECT_EQ(latest_without(100), StepFolder(root, 300));
  World().Barrier();
}

}  // namespace
}  // namespace plait::parallel
