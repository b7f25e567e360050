// Asynchronous saves: the values at Start() are saved, even if the tensors change afterwards.
#include "parallel/checkpoint/async_saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "comm/gathered_text.h"
#include "comm/testing/world.h"
#include "data/hdf5/file.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/step_folders.h"
#include "parallel/checkpoint/testing/testing_tensors.h"

namespace plait::parallel {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const comm::Communicator& World() { return comm::testing::World(); }

std::string FreshRoot(const std::string& name) {
  const std::string root = ::testing::TempDir() + "/" + name;
  if (World().rank() == 0) fs::remove_all(root);
  World().Barrier();
  return root;
}

testing::OwnedPieces PiecesOf(int version) {
  return testing::RandomPieces(testing::ManyTensors(), World().size(), World().rank(), 3, version);
}

void Overwrite(testing::OwnedPieces& own) {
  for (std::vector<std::byte>& values : own.values) std::fill(values.begin(), values.end(), std::byte{0x55});
}

void ExpectSaved(const std::string& root, std::int64_t step, int version) {
  absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(StepFolder(root, step));
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  if (checkpoint.ok()) {
    EXPECT_EQ(testing::FirstDifference(*checkpoint, testing::ManyTensors(), 1, version), "");
    EXPECT_EQ(*checkpoint->RankState(World().rank(), "rng"), absl::StrCat("rank ", World().rank()));
  }
  World().Barrier();
}

CheckpointState State() { return {.rank_state = {{"rng", absl::StrCat("rank ", World().rank())}}}; }

TEST(AsyncSaver, SavesWhatWasThereAtStart) {
  const std::string root = FreshRoot("async");
  AsyncSaver saver(World(), root, {.keep_last = 2});
  std::vector<std::string> ends;
  for (int step = 1; step <= 3; ++step) {
    testing::OwnedPieces own = PiecesOf(step);
    const absl::Status started = saver.Start(step, own.pieces, State());
    EXPECT_TRUE(started.ok()) << started;
    EXPECT_TRUE(saver.in_flight());
    EXPECT_FALSE(fs::exists(StepFolder(root, step)));
    Overwrite(own);
    // The program writes other HDF5 files in the meantime.
    data::File other = *data::File::Create(absl::StrCat(root, "/other_", World().rank(), ".h5"));
    int polls = 0;
    std::optional<SaveReport> report;
    while (!report) {
      const absl::StatusOr<std::optional<SaveReport>> polled = saver.Poll();
      ASSERT_TRUE(polled.ok()) << polled.status();  // agreed: all ranks leave together
      report = *polled;
      EXPECT_TRUE(
          data::WriteArray<double>(other, absl::StrCat("/x/", ++polls), std::vector<double>(1000), {1000})
              .ok());
    }
    EXPECT_FALSE(saver.in_flight());
    EXPECT_EQ(report->folder, StepFolder(root, step));
    for (const std::string& other_polls : comm::GatherText(World(), absl::StrCat(polls))) {
      EXPECT_EQ(other_polls, absl::StrCat(polls)) << "ranks ended the save at different steps";
    }
    EXPECT_TRUE(other.Close().ok());
    ExpectSaved(root, step, step);
  }
  EXPECT_EQ(*CompleteSteps(root), (std::vector<std::int64_t>{2, 3}));
  World().Barrier();
}

TEST(AsyncSaver, AStartFinishesTheSaveBefore) {
  const std::string root = FreshRoot("async_two");
  AsyncSaver saver(World(), root, {});
  for (int step = 1; step <= 4; ++step) {
    testing::OwnedPieces own = PiecesOf(step);
    const absl::Status started = saver.Start(step, own.pieces, State());
    EXPECT_TRUE(started.ok()) << started;
    Overwrite(own);
    EXPECT_EQ(CompleteSteps(root)->size(), static_cast<std::size_t>(step - 1));
    World().Barrier();
  }
  EXPECT_TRUE(saver.Finish()->has_value());
  for (int step = 1; step <= 4; ++step) ExpectSaved(root, step, step);
}

TEST(AsyncSaver, NothingIsSaidWhereNothingIsSaved) {
  AsyncSaver saver(World(), FreshRoot("async_idle"), {});
  if (World().rank() == 0) {  // only this rank: communication would hang
    EXPECT_FALSE(saver.Poll()->has_value());
    EXPECT_FALSE(saver.Finish()->has_value());
  }
  World().Barrier();
}

TEST(AsyncSaver, AFailedSaveIsToldOnceAndTheNextOneIsGood) {
  const std::string root = FreshRoot("async_failed");
  AsyncSaver saver(World(), root, {});
  const testing::OwnedPieces own = PiecesOf(1);
  EXPECT_TRUE(saver.Start(1, own.pieces, State()).ok());
  World().Barrier();
  // A file in place of the folder that the threads need.
  if (World().rank() == World().size() - 1) {
    std::error_code busy;
    while (!fs::is_regular_file(PartialFolder(root, 1), busy)) {
      fs::remove_all(PartialFolder(root, 1), busy);
      std::ofstream(PartialFolder(root, 1)) << "in the way";
    }
  }
  World().Barrier();
  const absl::Status failed = saver.Start(2, own.pieces, State());
  EXPECT_FALSE(failed.ok());
  EXPECT_THAT(std::string(failed.message()), HasSubstr(PartialFolder(root, 1)));
  for (const std::string& other : comm::GatherText(World(), failed.ToString()))
    EXPECT_EQ(other, failed.ToString());
  EXPECT_FALSE(saver.in_flight());
  EXPECT_TRUE(CompleteSteps(root)->empty());
  EXPECT_TRUE(saver.Start(2, own.pieces, State()).ok());
  EXPECT_TRUE(saver.Finish().ok());
  ExpectSaved(root, 2, 1);
}

TEST(AsyncSaver, ItsDestructorJoinsAndLeavesAPartialFolder) {
  const std::string root = FreshRoot("async_left");
  const testing::OwnedPieces own = PiecesOf(1);
  {
    AsyncSaver saver(World(), root, {});
    EXPECT_TRUE(saver.Start(1, own.pieces, State()).ok());
  }
  EXPECT_TRUE(CompleteSteps(root)->empty());
  EXPECT_TRUE(fs::exists(PartialFolder(root, 1)));
  World().Barrier();
  EXPECT_TRUE(SaveCheckpoint(World(), root, 2, own.pieces, State()).ok());
  EXPECT_FALSE(fs::exists(PartialFolder(root, 1)));
  ExpectSaved(root, 2, 1);
}

}  // namespace
}  // namespace plait::parallel
