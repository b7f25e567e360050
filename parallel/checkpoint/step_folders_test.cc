// Folders are also removed in programs that link libtorch.so (those with CUDA), which exports its own
// std::filesystem, whose remove_all crashes.
#include "parallel/checkpoint/step_folders.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/types/span.h"
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
  EXPECT_EQ(*CompleteSteps(root_), (std::vector<std::int64_t>{2, 3, 4}));
  EXPECT_TRUE(fs::exists(PartialFolder(root_, 1) + "/inner/index.h5"));
  RemovePartials(comm::Communicator::Self(), root_);
  EXPECT_EQ(*CompleteSteps(root_), (std::vector<std::int64_t>{2, 3, 4}));
  EXPECT_FALSE(fs::exists(PartialFolder(root_, 1)));
}

// A run resumed from 3: 4 was damaged, 5 and 6 are of an attempt that was given up.
TEST_F(StepFoldersTest, SupersededOnesAreRetiredBeforeThoseTheRunDependsOn) {
  for (const std::int64_t step : {1, 2, 3, 4, 5, 6, 7, 9}) Fill(StepFolder(root_, step), "index.h5");
  EXPECT_EQ(StepsAfter(root_, 3), (std::vector<std::int64_t>{4, 5, 6, 7, 9}));
  const std::vector<std::int64_t> superseded = {4, 5, 6, 9};  // 7 has been saved since
  RetireOlder(root_, /*step=*/7, /*keep=*/4, superseded);
  EXPECT_EQ(*CompleteSteps(root_), (std::vector<std::int64_t>{1, 2, 3, 7, 9}));
  RetireOlder(root_, /*step=*/7, /*keep=*/2, superseded);
  EXPECT_EQ(*CompleteSteps(root_), (std::vector<std::int64_t>{3, 7, 9}));
  EXPECT_TRUE(StepsAfter(root_ + "/none", 3).empty());
}

// From now on the kernel answers system calls as the filter says.
bool Install(absl::Span<sock_filter> filter) {
  const sock_fprog program = {.len = static_cast<std::uint16_t>(filter.size()), .filter = filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// No folder can be read, as after an error of the disk.
bool CannotList() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getdents64, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EIO),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return Install(absl::MakeSpan(filter));
}

// renameat2 with flags fails as on NFS and Lustre.
bool CannotExchange() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[4])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return Install(absl::MakeSpan(filter));
}

// The exit status of `body` in a process of its own.
int InChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

// A run would begin again there, and replace the checkpoints.
TEST_F(StepFoldersTest, AFolderThatCannotBeListedIsNotOneWithoutCheckpoints) {
  EXPECT_TRUE(CompleteSteps(root_)->empty());
  EXPECT_EQ(FindLatestCheckpoint(root_).status().code(), absl::StatusCode::kNotFound);
  Fill(StepFolder(root_, 1), "index.h5");
  EXPECT_EQ(*CompleteSteps(root_), (std::vector<std::int64_t>{1}));
  const int status = InChild([this] {
    if (!CannotList()) return 2;
    int wrong = 0;
    for (const absl::Status& told : {CompleteSteps(root_).status(), FindLatestCheckpoint(root_).status()}) {
      std::fprintf(stderr, "%s\n", told.ToString().c_str());
      wrong += told.ok() || absl::IsNotFound(told) || !absl::StrContains(told.message(), root_) ? 1 : 0;
    }
    return wrong;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(StepFoldersTest, PublishReplacesAnOlderFolderWhereFoldersCannotBeExchanged) {
  Fill(StepFolder(root_, 1), "old.h5");
  Fill(PartialFolder(root_, 1), "new.h5");
  Fill(StepFolder(root_, 2), "index.h5");
  const int status = InChild([this] {
    if (!CannotExchange()) return 2;
    const absl::Status published = PublishFolder(root_, 1);
    if (!published.ok()) std::fprintf(stderr, "%s\n", published.ToString().c_str());
    return published.ok() ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(fs::exists(StepFolder(root_, 1) + "/inner/new.h5"));
  EXPECT_FALSE(fs::exists(StepFolder(root_, 1) + "/old.h5"));
  EXPECT_EQ(*CompleteSteps(root_), (std::vector<std::int64_t>{2}));
  RemovePartials(comm::Communicator::Self(), root_);
  EXPECT_EQ(std::distance(fs::directory_iterator(root_), fs::directory_iterator()), 2);
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
