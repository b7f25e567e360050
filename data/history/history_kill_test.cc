// A process that appends and commits all the time is killed at many moments; the file opens each time,
// without help, and after recovery holds every draw that the process had been told was taken.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>

#include "data/hdf5/file.h"
#include "data/history/history.h"
#include "data/history/history_file.h"

namespace plait::data {
namespace {

namespace fs = std::filesystem;

// Appends for ever; counts the draws taken in memory that the parent sees.
[[noreturn]] void AppendForEver(const std::string& path, std::int64_t draws,
                                std::atomic<std::int64_t>& taken) {
  auto history = draws == 0 ? History::Create(path, {.commit_seconds = 0}) : History::Resume(path, draws, {});
  if (!history.ok()) _exit(1);
  for (std::int64_t i = draws;; ++i) {
    const double value = 0.5 * static_cast<double>(i);
    const absl::Status status =
        i % 50 == 0 ? (*history)->Append({{"a", value}, {"b", -value}}) : (*history)->Append({{"a", value}});
    if (!status.ok()) _exit(2);
    taken.store(i + 1);
    if (i % 20 == 0 && !(*history)->Commit().ok()) _exit(3);
  }
}

TEST(History, SurvivesKillsAtAnyMoment) {
  const std::string path = testing::TempDir() + "/killed.h5";
  fs::remove(path);
  void* shared = mmap(nullptr, sizeof(std::atomic<std::int64_t>), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto& taken = *new (shared) std::atomic<std::int64_t>(0);
  std::int64_t before = 0;
  for (int round = 0; round < 25; ++round) {
    const pid_t child = fork();
    if (child == 0) AppendForEver(path, before, taken);
    while (taken.load() == before && waitpid(child, nullptr, WNOHANG) == 0) usleep(200);
    usleep(3000 + 1700 * round);  // when to kill, not how long anything may take
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const std::int64_t promised = taken.load();
    ASSERT_GT(promised, before) << "the process could not go on";
    ASSERT_TRUE(OpenHistoryFile(path, File::Mode::kRead).ok()) << "round " << round;
    ASSERT_TRUE(History::Recover(path).ok());
    const File file = *OpenHistoryFile(path, File::Mode::kRead);
    const std::vector<double> a = *ReadArray<double>(file, "/a");
    // The draw in flight may or may not be there.
    ASSERT_GE(static_cast<std::int64_t>(a.size()), promised);
    ASSERT_LE(static_cast<std::int64_t>(a.size()), promised + 1);
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(a[i], 0.5 * static_cast<double>(i));
    before = promised;
    taken.store(before);
  }
}

}  // namespace
}  // namespace plait::data
