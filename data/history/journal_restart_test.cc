// A disk that is full, or fails, when the next journal begins after a commit.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "data/hdf5/file.h"
#include "data/history/history.h"
#include "data/history/history_file.h"

namespace {
std::atomic<int> failing_restarts = 0;
}  // namespace

// Replaces the C library's: the first bytes of a journal find no room.
ssize_t pwrite(int file, const void* bytes, std::size_t count, off_t offset) {
  char path[4096] = {};
  const ssize_t length = readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), path, sizeof(path) - 1);
  const std::string name(path, length > 0 ? static_cast<std::size_t>(length) : 0);
  if (failing_restarts > 0 && offset == 0 && absl::EndsWith(name, ".journal")) {
    --failing_restarts;
    errno = ENOSPC;
    return -1;
  }
  return syscall(SYS_pwrite64, file, bytes, count, offset);
}

namespace plait::data {
namespace {

namespace fs = std::filesystem;
constexpr double kNever = 1e9;  // seconds to a commit by Append

TEST(JournalRestart, DrawsAfterAFailedOneAreKept) {
  const std::string path = ::testing::TempDir() + "/restart.h5";
  fs::remove(path);
  auto history = *History::Create(path, {.commit_seconds = kNever});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(history->Append({{"loss", 1.0 * i}}).ok());
  failing_restarts = 2;
  EXPECT_FALSE(history->Commit().ok());
  EXPECT_FALSE(history->Append({{"loss", 5.0}}).ok()) << "still full";
  for (int i = 5; i < 15; ++i) ASSERT_TRUE(history->Append({{"loss", 1.0 * i}}).ok());
  ASSERT_TRUE(history->Commit().ok());
  for (int i = 15; i < 20; ++i) ASSERT_TRUE(history->Append({{"late", 1.0 * i}}).ok());
  ASSERT_TRUE(history->Close().ok());
  const File file = *File::Open(path);
  EXPECT_EQ(*DrawCount(file), 20);
}

// A journal that somebody cut is noticed, instead of a file that is called complete.
TEST(JournalRestart, AJournalWithoutItsDrawsIsDataLoss) {
  const std::string path = ::testing::TempDir() + "/cut.h5";
  fs::remove(path);
  auto history = *History::Create(path, {.commit_seconds = kNever});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(history->Append({{"loss", 1.0 * i}}).ok());
  fs::resize_file(path + ".journal", fs::file_size(path + ".journal") - 4);
  EXPECT_EQ(history->Close().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace plait::data
