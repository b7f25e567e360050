// Locks that are held, released and stale.
#include "tools/training/folder_lock.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"
#include "base/testing/power_loss.h"

namespace plait::training {
namespace {

namespace fs = std::filesystem;

std::string NewFolder(const std::string& name) {
  const std::string folder = testing::TempDir() + "/" + name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

void Write(const std::string& folder, const std::string& content) {
  std::ofstream(folder + "/lock") << content;
}

TEST(FolderLock, OneAtATime) {
  const std::string folder = NewFolder("one");
  {
    const auto first = FolderLock::Take(folder, {.job_id = "17"});
    ASSERT_TRUE(first.ok()) << first.status();
    const absl::Status second = FolderLock::Take(folder, {}).status();
    EXPECT_EQ(second.code(), absl::StatusCode::kAlreadyExists);
    EXPECT_NE(second.message().find(absl::StrCat(folder, "/lock: process ", getpid(), " on ")),
              std::string::npos)
        << second;
    EXPECT_NE(second.message().find("(job 17) is writing checkpoints there"), std::string::npos) << second;
  }
  EXPECT_TRUE(fs::is_empty(folder)) << "nothing is left behind";
  EXPECT_TRUE(FolderLock::Take(folder, {}).ok());
}

TEST(FolderLock, AKilledProcessOfThisHostDoesNotCount) {
  const std::string folder = NewFolder("killed");
  const pid_t child = fork();
  if (child == 0) {
    auto lock = FolderLock::Take(folder, {});
    _exit(lock.ok() ? (lock->release(), 0) : 1);
  }
  siginfo_t ended = {};
  waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);  // it stays in the table of processes
  ASSERT_EQ(ended.si_status, 0);
  ASSERT_TRUE(fs::exists(folder + "/lock"));
  EXPECT_TRUE(FolderLock::Take(folder, {}).ok());
  waitpid(child, nullptr, 0);
}

// Writes a lock of a process with this pid and another start time.
void WriteLockOfThisHost(const std::string& folder, const std::string& process_namespace) {
  char host[256] = {};
  gethostname(host, sizeof(host));
  Write(folder, absl::StrCat("host=", host, "\npid=", getpid(), "\nstart=1\nnamespace=", process_namespace,
                             "\njob=\n"));
}

// Pids are used again.
TEST(FolderLock, AnotherProcessWithThePidDoesNotCount) {
  const std::string folder = NewFolder("reused");
  WriteLockOfThisHost(folder, fs::read_symlink("/proc/self/ns/pid"));
  int said = 0;
  EXPECT_TRUE(FolderLock::Take(folder, {.say = [&](const std::string&) { ++said; }}).ok());
  EXPECT_EQ(said, 0);
}

// Its processes are invisible from here, so that pids say nothing.
TEST(FolderLock, AContainerOfThisHostIsWatchedAsAnotherHostIs) {
  const std::string folder = NewFolder("container");
  WriteLockOfThisHost(folder, "pid:[1]");
  int said = 0;
  const FolderLockOptions options = {.watch_seconds = 0.5, .say = [&](const std::string&) { ++said; }};
  EXPECT_TRUE(FolderLock::Take(folder, options).ok());
  EXPECT_EQ(said, 1);
}

// While a job watches a stale lock, another one removes it and takes its own.
TEST(FolderLock, AWaitingJobLeavesTheLockThatAnotherHasTakenMeanwhile) {
  const std::string folder = NewFolder("waiting");
  WriteLockOfThisHost(folder, "pid:[1]");
  std::unique_ptr<FolderLock> other;
  const auto take_other = [&](const std::string&) {
    fs::remove(folder + "/lock");
    auto taken = FolderLock::Take(folder, {.job_id = "18"});
    ASSERT_TRUE(taken.ok()) << taken.status();
    other = *std::move(taken);
  };
  const absl::Status waiting = FolderLock::Take(folder, {.watch_seconds = 0.5, .say = take_other}).status();
  EXPECT_EQ(waiting.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(waiting.message()), ::testing::HasSubstr("(job 18)"));
  EXPECT_TRUE(fs::exists(folder + "/lock"));
}

// Between the attempt to make it and the look at its owner: the pipe is opened for reading, and is gone when it has ended.
TEST(FolderLock, ALockThatIsReleasedMeanwhileIsNotWatched) {
  const std::string folder = NewFolder("released"), path = folder + "/lock";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::thread owner([&path] {
    const int pipe = open(path.c_str(), O_WRONLY);
    unlink(path.c_str());
    close(pipe);
  });
  int said = 0;
  const FolderLockOptions options = {.watch_seconds = 0.5, .say = [&](const std::string&) { ++said; }};
  const auto lock = FolderLock::Take(folder, options);
  owner.join();
  EXPECT_TRUE(lock.ok()) << lock.status();
  EXPECT_EQ(said, 0);
}

// While it is watched, instead of the name of a process that has ended.
TEST(FolderLock, ALockThatIsReleasedWhileItIsWatchedIsTaken) {
  const std::string folder = NewFolder("released_late");
  WriteLockOfThisHost(folder, "pid:[1]");
  const auto release = [&](const std::string&) { fs::remove(folder + "/lock"); };
  EXPECT_TRUE(FolderLock::Take(folder, {.watch_seconds = 1e9, .say = release}).ok());
}

// Both have found that its owner is gone.
TEST(FolderLock, OnlyOneProcessAtATimeRemovesAnOldLock) {
  const std::string folder = NewFolder("removing");
  WriteLockOfThisHost(folder, fs::read_symlink("/proc/self/ns/pid"));
  {
    const auto removing = base::FileDescriptor::Open(folder, base::FileDescriptor::Mode::kRead);
    ASSERT_TRUE(removing.ok() && removing->Lock().ok());
    EXPECT_EQ(FolderLock::Take(folder, {}).status().code(), absl::StatusCode::kAlreadyExists);
    EXPECT_TRUE(fs::exists(folder + "/lock"));
  }
  EXPECT_TRUE(FolderLock::Take(folder, {}).ok());
}

TEST(FolderLock, AnotherHostCountsAsLongAsItTouchesTheFile) {
  const std::string folder = NewFolder("host");
  int said = 0;
  const FolderLockOptions options = {.watch_seconds = 2, .say = [&](const std::string&) { ++said; }};
  {
    const auto there = FolderLock::Take(folder, {.touch_seconds = 0.1, .host = "elsewhere"});
    ASSERT_TRUE(there.ok());
    EXPECT_EQ(FolderLock::Take(folder, options).status().code(), absl::StatusCode::kAlreadyExists);
    EXPECT_EQ(said, 1);
  }
  Write(folder, "host=elsewhere\npid=1\nstart=1\njob=\n");
  EXPECT_TRUE(FolderLock::Take(folder, options).ok());
  EXPECT_EQ(said, 2);
}

TEST(FolderLock, AFolderThatIsNotThereIsAnError) {
  EXPECT_FALSE(FolderLock::Take(testing::TempDir() + "/nowhere", {}).ok());
}

// An empty lock would name no owner, and be watched before it counts as stale.
TEST(FolderLock, AfterALossOfPowerItSaysWhoseItWas) {
  const std::string folder = NewFolder("power_loss");
  const auto take = [&](const base::testing::Mark&) { return FolderLock::Take(folder, {}).ok(); };
  const auto report =
      base::testing::LosePower(folder, take, [](const std::string& after, int) -> std::string {
        std::ifstream lock(after + "/lock");
        std::string text;
        if (!lock || (lock >> text && text.starts_with("host="))) return "";
        return "the lock is empty";
      });
  EXPECT_EQ(report.faults, std::vector<std::string>{});
  EXPECT_GT(report.states, 3);
  RecordProperty("operations", report.operations);
  RecordProperty("states", report.states);
}

}  // namespace
}  // namespace plait::training
