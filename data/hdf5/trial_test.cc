// What becomes of a process that crashes on a file, with functions that crash in WalkFile's place.
#include "data/hdf5/trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>

namespace plait::data {
namespace {

using ::testing::EndsWith;

class TrialTest : public testing::TestWithParam<bool> {
 protected:
  // In programs of a parent that ignores SIGCHLD the exit status of a child is lost.
  void SetUp() override {
    std::ofstream(path_) << "any file";
    if (GetParam()) std::signal(SIGCHLD, SIG_IGN);
  }
  void TearDown() override { std::signal(SIGCHLD, SIG_DFL); }

  std::string path_ = testing::TempDir() + "/trial";
};

TEST_P(TrialTest, ReturnsOkOnlyIfTheChildSurvives) {
  EXPECT_TRUE(TryInChild(path_, [] {}).ok());
  for (const auto& crash : {+[] { std::abort(); }, +[] { raise(SIGSEGV); }, +[] { raise(SIGKILL); },
                            +[] { _exit(0); }, +[] { _exit(3); }}) {
    const absl::Status status = TryInChild(path_, crash);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()),
                EndsWith("/trial: damaged: HDF5 crashes or runs out of memory on it"));
  }
}

TEST_P(TrialTest, LimitsMemory) {
  // Written to, so that it is not optimized away.
  const auto allocate = [] { *static_cast<volatile char*>(std::malloc(std::size_t{8} << 30)) = 1; };
  EXPECT_EQ(TryInChild(path_, allocate).code(), absl::StatusCode::kDataLoss);
}

INSTANTIATE_TEST_SUITE_P(SigchldIgnored, TrialTest, testing::Bool());

TEST(Trial, NamesAFileThatNeverEnds) {
  const std::string path = testing::TempDir() + "/trial";
  std::ofstream(path) << "any file";
  EXPECT_THAT(std::string(TryInChild(path, [] { raise(SIGXCPU); }).message()),
              EndsWith("does not come to an end on it"));
}

}  // namespace
}  // namespace plait::data
