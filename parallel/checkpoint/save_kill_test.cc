// Processes that are killed during a save, at every SavePoint and at random times, and a disk that is really full: the
// previous checkpoint stays intact, or a newer one is complete.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/seed.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/save_task.h"
#include "parallel/checkpoint/step_folders.h"
#include "parallel/checkpoint/testing/testing_tensors.h"

namespace plait::parallel {
namespace {

namespace fs = std::filesystem;

constexpr SavePoint kPoints[] = {SavePoint::kFolderReady,  SavePoint::kFileLaidOut, SavePoint::kValuesWritten,
                                 SavePoint::kIndexWritten, SavePoint::kPublished,   SavePoint::kLatestWritten,
                                 SavePoint::kOlderRemoved};

std::vector<TensorSpec> Tensors() {
  return {{"model", "weight", at::kFloat, {500, 600}}, {"model", "bias", at::kDouble, {}}};
}
constexpr std::int64_t kBytes = 500 * 600 * 4 + 8;

absl::Status Save(const std::string& root, std::int64_t step, int version, const SaveOptions& options = {},
                  const SaveObserver& observer = {}) {
  const testing::OwnedPieces own = testing::RandomPieces(Tensors(), 1, 0, 1, version);
  absl::StatusOr<SaveTask> task =
      SaveTask::Prepare(comm::Communicator::Self(), root, step, own.pieces, {}, options, observer);
  if (!task.ok()) return task.status();
  std::vector<const void*> values;
  for (const LayoutPiece& piece : task->own_pieces()) values.push_back(own.pieces[piece.offered].data);
  return task->Commit(task->WriteValues(values)).status();
}

SaveObserver KillAt(SavePoint point) {
  return [point](SavePoint passed) {
    if (passed == point) kill(getpid(), SIGKILL);
    return absl::OkStatus();
  };
}

std::string FreshRoot(const std::string& name) {
  const std::string root = ::testing::TempDir() + "/" + name;
  fs::remove_all(root);
  return root;
}

pid_t Child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  return child;
}

int StatusOf(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// The step of the latest checkpoint; its elements are those of one of the versions. -1: none, or damaged.
std::int64_t LatestWhole(const std::string& root, const std::vector<int>& versions) {
  const absl::StatusOr<std::string> latest = FindLatestCheckpoint(root);
  if (!latest.ok()) return -1;
  Checkpoint checkpoint = *Checkpoint::Open(*latest);
  for (const int version : versions) {
    if (testing::FirstDifference(checkpoint, Tensors(), 1, version).empty()) return checkpoint.step();
  }
  return -1;
}

int PartialFolders(const std::string& root) {
  int count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    count += absl::StrContains(entry.path().filename().string(), ".partial") ? 1 : 0;
  }
  return count;
}

TEST(Kill, AtEveryPointOfALaterStep) {
  for (const SavePoint point : kPoints) {
    const std::string root = FreshRoot("kill_later");
    ASSERT_TRUE(Save(root, 1, 1).ok());
    const pid_t child = Child([&] { return Save(root, 2, 2, {.keep_last = 1}, KillAt(point)).ok(); });
    EXPECT_TRUE(WIFSIGNALED(StatusOf(child))) << static_cast<int>(point);
    const std::int64_t latest = LatestWhole(root, {1, 2});
    EXPECT_EQ(latest, point < SavePoint::kLatestWritten ? 1 : 2) << static_cast<int>(point);
    EXPECT_TRUE(Save(root, 3, 3, {.keep_last = 1}).ok());
    EXPECT_EQ(LatestWhole(root, {3}), 3);
    EXPECT_EQ(*CompleteSteps(root), std::vector<std::int64_t>{3});
    EXPECT_EQ(PartialFolders(root), 0);
  }
}

TEST(Kill, AtEveryPointOfTheSameStep) {
  for (const SavePoint point : kPoints) {
    const std::string root = FreshRoot("kill_same");
    ASSERT_TRUE(Save(root, 1, 1).ok());
    const pid_t child = Child([&] { return Save(root, 1, 2, {}, KillAt(point)).ok(); });
    EXPECT_TRUE(WIFSIGNALED(StatusOf(child))) << static_cast<int>(point);
    EXPECT_EQ(LatestWhole(root, {point < SavePoint::kPublished ? 1 : 2}), 1) << static_cast<int>(point);
  }
}

TEST(Kill, AtAnyMoment) {
  const std::string root = FreshRoot("kill_any");
  base::RandomStream draw(base::DeriveSeed(3, "moments"));
  std::int64_t latest = 1;
  ASSERT_TRUE(Save(root, 1, 1).ok());
  for (int round = 0; round < 25; ++round) {
    const pid_t child = Child([&] {
      for (std::int64_t step = latest + 1;; ++step) {
        if (!Save(root, step, static_cast<int>(step % 3), {.keep_last = 2}).ok()) return 1;
      }
    });
    std::this_thread::sleep_for(std::chrono::microseconds(draw.Below(60000)));
    kill(child, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(StatusOf(child)));
    const std::int64_t now = LatestWhole(root, {0, 1, 2});
    ASSERT_GE(now, latest);
    Checkpoint checkpoint = *Checkpoint::Open(StepFolder(root, now));
    EXPECT_EQ(testing::FirstDifference(checkpoint, Tensors(), 2, static_cast<int>(now % 3)), "");
    latest = now;
  }
}

// A small file system that only this process sees, if the system allows it.
bool MountSmallDisk(const std::string& folder, std::int64_t bytes) {
  fs::create_directories(folder);
  const int spaces = geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS;
  return unshare(spaces) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", folder.c_str(), "tmpfs", 0, absl::StrCat("size=", bytes).c_str()) == 0;
}

// Takes all but `left` bytes.
void FillDisk(const std::string& folder, std::int64_t left) {
  struct statvfs space;
  statvfs(folder.c_str(), &space);
  const auto free_bytes = static_cast<std::int64_t>(space.f_bavail * space.f_frsize);
  std::ofstream(folder + "/filling") << std::string(std::max<std::int64_t>(0, free_bytes - left), 'x');
}

// 0: success. Runs in a child process, because its mounts and limits cannot be undone.
int SaveOnAFullDisk(const std::string& root, std::int64_t left) {
  if (MountSmallDisk(root, 3 * kBytes)) {
    if (!Save(root, 1, 1).ok()) return 2;
    FillDisk(root, left);
  } else {
    // Otherwise a file size limit simulates a full disk.
    if (!Save(root, 1, 1).ok()) return 2;
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{static_cast<rlim_t>(left / 2), static_cast<rlim_t>(left / 2)};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  const absl::Status full = Save(root, 2, 2, {.keep_last = 1});
  if (full.code() != absl::StatusCode::kResourceExhausted) return 3;
  if (absl::StrContains(full.message(), '\n') || !absl::StrContains(full.message(), root)) return 4;
  if (LatestWhole(root, {1}) != 1) return 5;
  return PartialFolders(root) == 0 ? 0 : 6;
}

TEST(FullDisk, TheLastGoodOneStays) {
  // Detected before anything is written; by HDF5's structures; and when the values are allocated.
  for (const std::int64_t left : {kBytes / 2, kBytes, kBytes + 4096, kBytes + 8192}) {
    const std::string root = FreshRoot(absl::StrCat("full_", left));
    const int status = StatusOf(Child([&] { return SaveOnAFullDisk(root, left); }));
    EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0) << left;
  }
}

}  // namespace
}  // namespace plait::parallel
