// Folders are also removed in programs that link libtorch.so (those with CUDA), which exports its own
// std::filesystem, whose remove_all crashes.
#include "parallel/checkpoint/step_folders.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/path.h"
#include "comm/communicator.h"

namespace plait::parallel {
namespace {

namespace fs = std::filesystem;

class StepFoldersTest : public testing::Test {
 protected:
  StepFoldersTest() : root_(testing::TempDir() + "/step_folders_test" + std::to_string(getpid())) {}
  ~StepFoldersTest() override { base::RemoveTree(root_); }

  // With a file, as a save leaves it.
  void Fill(const std::string& folder, const std::string& file) {
    fs::create_directories(folder + "/inner");
    std::ofstream(folder + "/" + file) << "data";
    std::ofstream(folder + "/inner/" + file) << "data";
  }

  std::string root_;
};

TEST_F(StepFoldersTest, MakeReadyRemovesWhatKilledJobsLeft) {
  Fill(PartialFolder(root_, 1), "rank-0.h5");
  Fill(PartialFolder(root_, 7), "rank-0.h5");
  Fill(StepFolder(root_, 2), "index.h5");
  ASSERT_TRUE(MakeReady(root_, 0).ok());
  EXPECT_FALSE(fs::exists(PartialFolder(root_, 1)));
  EXPECT_FALSE(fs::exists(PartialFolder(root_, 7)));
  EXPECT_TRUE(fs::exists(StepFolder(root_, 2) + "/inner/index.h5"));
}

TEST_F(StepFoldersTest, RetiredAreThoseBeyondTheNewest) {
  for (const std::int64_t step : {1, 2, 3, 4}) Fill(StepFolder(root_, step), "index.h5");
  RetireOlder(root_, /*step=*/3, /*keep=*/2);
  EXPECT_EQ(CompleteSteps(root_), (std::vector<std::int64_t>{2, 3, 4}));
  EXPECT_TRUE(fs::exists(PartialFolder(root_, 1) + "/inner/index.h5"));
  RemovePartials(comm::Communicator::Self(), root_);
  EXPECT_EQ(CompleteSteps(root_), (std::vector<std::int64_t>{2, 3, 4}));
  EXPECT_FALSE(fs::exists(PartialFolder(root_, 1)));
}

TEST_F(StepFoldersTest, PublishReplacesAnOlderFolder) {
  Fill(StepFolder(root_, 1), "old.h5");
  Fill(PartialFolder(root_, 1), "new.h5");
  ASSERT_TRUE(PublishFolder(root_, 1).ok());
  EXPECT_TRUE(fs::exists(StepFolder(root_, 1) + "/new.h5"));
  EXPECT_FALSE(fs::exists(StepFolder(root_, 1) + "/old.h5"));
  EXPECT_TRUE(fs::exists(PartialFolder(root_, 1) + "/old.h5"));
}

}  // namespace
}  // namespace plait::parallel
