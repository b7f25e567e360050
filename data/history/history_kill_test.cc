// A process that appends and commits continuously is killed many times. The file opens each time, and after Recover
// holds every draw whose Append had returned. So do the exports, apart from the record that was being written.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "data/hdf5/atomic_file.h"
#include "data/hdf5/file.h"
#include "data/history/history.h"
#include "data/history/history_file.h"
#include "data/history/sinks.h"
#include "data/history/tensorboard_record.h"

namespace plait::data {
namespace {

namespace fs = std::filesystem;

struct Paths {
  std::string history, csv, lines, tensorboard;
};

// Of one round: exports are files of their own in every run.
Paths PathsOf(int round) {
  const std::string stem = testing::TempDir() + "/killed";
  const std::string number = std::to_string(round);
  return {stem + ".h5", stem + number + ".csv", stem + number + ".jsonl", stem + number};
}

void AddExports(History& history, const Paths& paths) {
  auto csv = MakeCsvSink(paths.csv);
  auto lines = MakeJsonLinesSink(paths.lines);
  auto tensorboard = MakeTensorboardSink(paths.tensorboard, {});
  if (!csv.ok() || !lines.ok() || !tensorboard.ok()) _exit(4);
  history.AddSink(*std::move(csv));
  history.AddSink(*std::move(lines));
  history.AddSink(*std::move(tensorboard));
}

// Appends for ever; counts the draws taken in memory that the parent sees. Metrics come late all the time, so
// that kills fall into what that needs.
[[noreturn]] void AppendForEver(const Paths& paths, std::int64_t draws, std::atomic<std::int64_t>& taken) {
  auto history = draws == 0 ? History::Create(paths.history, {.commit_seconds = 0})
                            : History::Resume(paths.history, draws, {});
  if (!history.ok()) _exit(1);
  AddExports(**history, paths);
  for (std::int64_t i = draws;; ++i) {
    const double value = 0.5 * static_cast<double>(i);
    const std::vector<double> pair = {value, -value};
    const std::string late = "late" + std::to_string(i / 64 % 8);
    std::vector<Scalar> scalars = {{"a", value}};
    if (i % 32 == 0) scalars.push_back({late, value});
    const absl::Status status = (*history)->Append(scalars, {{"pair", pair}});
    if (!status.ok()) _exit(2);
    taken.store(i + 1);
    if (i % 20 == 0 && !(*history)->Commit().ok()) _exit(3);
  }
}

std::vector<std::string> LinesOf(const std::string& path) {
  std::vector<std::string> lines = absl::StrSplit(*ReadWholeFile(path), '\n');
  lines.pop_back();  // empty, or what was being written
  return lines;
}

// Draws from `first` on, at least to `end`, each with all columns.
void ExpectWholeCsv(const std::string& path, std::int64_t first, std::int64_t end) {
  const std::vector<std::string> lines = LinesOf(path);
  ASSERT_GE(static_cast<std::int64_t>(lines.size()), 1 + end - first);
  const auto commas = [](const std::string& line) { return std::count(line.begin(), line.end(), ','); };
  for (std::size_t i = 1; i < lines.size(); ++i) {
    ASSERT_EQ(commas(lines[i]), commas(lines[0])) << lines[i];
    ASSERT_TRUE(absl::StartsWith(lines[i], absl::StrCat(first + static_cast<std::int64_t>(i) - 1, ",")));
  }
}

void ExpectWholeLines(const std::string& path, std::int64_t first, std::int64_t end) {
  const std::vector<std::string> lines = LinesOf(path);
  ASSERT_GE(static_cast<std::int64_t>(lines.size()), end - first);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    ASSERT_TRUE(absl::StartsWith(lines[i], absl::StrCat("{\"draw\":", first + static_cast<std::int64_t>(i))));
    ASSERT_TRUE(absl::EndsWith(lines[i], "]}"));
  }
}

// Walks the records by their lengths: the version, then one per draw.
void ExpectWholeRecords(const std::string& folder, std::int64_t draws) {
  const std::string bytes = *ReadWholeFile(fs::directory_iterator(folder)->path());
  std::int64_t records = 0;
  for (std::size_t at = 0; at + 8 <= bytes.size(); ++records) {
    std::uint64_t length;
    std::memcpy(&length, bytes.data() + at, sizeof(length));
    if (at + 16 + length > bytes.size()) break;
    ASSERT_EQ(TfRecord(bytes.substr(at + 12, length)), bytes.substr(at, 16 + length));
    at += 16 + length;
  }
  EXPECT_GE(records, 1 + draws);
}

void ExpectWholeHistory(const std::string& path, std::int64_t promised) {
  const File file = *OpenHistoryFile(path);
  const std::vector<double> a = *ReadArray<double>(file, "/a"), pair = *ReadArray<double>(file, "/pair");
  // The draw in flight may or may not be there.
  ASSERT_GE(static_cast<std::int64_t>(a.size()), promised);
  ASSERT_LE(static_cast<std::int64_t>(a.size()), promised + 1);
  ASSERT_EQ(pair.size(), 2 * a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i], 0.5 * static_cast<double>(i));
    ASSERT_EQ(pair[2 * i], a[i]);
    ASSERT_EQ(pair[2 * i + 1], -a[i]);
  }
}

TEST(History, SurvivesKillsAtAnyMoment) {
  fs::remove(PathsOf(0).history);
  void* shared = mmap(nullptr, sizeof(std::atomic<std::int64_t>), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto& taken = *new (shared) std::atomic<std::int64_t>(0);
  std::int64_t before = 0;
  for (int round = 0; round < 25; ++round) {
    const Paths paths = PathsOf(round);
    for (const std::string& path : {paths.csv, paths.lines, paths.tensorboard}) fs::remove_all(path);
    const pid_t child = fork();
    if (child == 0) AppendForEver(paths, before, taken);
    while (taken.load() == before && waitpid(child, nullptr, WNOHANG) == 0) usleep(200);
    usleep(3000 + 1700 * round);  // when to kill, not how long anything may take
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const std::int64_t promised = taken.load();
    ASSERT_GT(promised, before) << "the process could not go on";
    ASSERT_TRUE(OpenHistoryFile(paths.history).ok()) << "round " << round;
    ASSERT_TRUE(History::Recover(paths.history).ok());
    ASSERT_NO_FATAL_FAILURE(ExpectWholeHistory(paths.history, promised));
    ASSERT_NO_FATAL_FAILURE(ExpectWholeCsv(paths.csv, before, promised));
    ASSERT_NO_FATAL_FAILURE(ExpectWholeLines(paths.lines, before, promised));
    ASSERT_NO_FATAL_FAILURE(ExpectWholeRecords(paths.tensorboard, promised - before));
    before = promised;
    taken.store(before);
  }
}

}  // namespace
}  // namespace plait::data
