// Power failure at any point: the file opens and holds every draw up to the last Commit that returned, before and after
// Recover; draws from before a resume never follow draws from after it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/path.h"
#include "base/testing/power_loss.h"
#include "data/hdf5/atomic_file.h"
#include "data/hdf5/file.h"
#include "data/history/history.h"
#include "data/history/history_file.h"

namespace plait::data {
namespace {

using base::testing::LosePower;
using base::testing::Mark;
using base::testing::PowerLossReport;

constexpr char kFile[] = "/run.h5";
constexpr int kResumedAt = 4;
constexpr int kSecond = 100;  // added to the numbers of the second run

bool Append(History& history, std::initializer_list<int> numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [&](int number) {
    return history.Append({{"a", static_cast<double>(number)}}).ok();
  });
}

// Both promise the number of draws, plus one.
bool WriteFirst(const std::string& path, const Mark& promise) {
  auto history = History::Create(path, {});
  if (!history.ok()) return false;
  promise(1);
  if (!Append(**history, {0, 1, 2}) || !(*history)->Commit().ok()) return false;
  promise(1 + 3);
  if (!Append(**history, {3, 4, 5})) return false;
  history->release();  // killed: its last draws are in the journal only
  return true;
}

bool WriteSecond(const std::string& path, const Mark& promise) {
  const auto history = History::Resume(path, kResumedAt, {});
  if (!history.ok()) return false;
  promise(1 + kResumedAt);
  if (!Append(**history, {kSecond + 4}) || !(*history)->Commit().ok()) return false;
  promise(1 + kResumedAt + 1);
  if (!Append(**history, {kSecond + 5, kSecond + 6}) || !(*history)->Close().ok()) return false;
  promise(1 + kResumedAt + 3);
  return true;
}

// The number of draws; -1 where they are not those of the first run followed by those of the second.
int WholeDraws(const std::string& path) {
  const auto file = OpenHistoryFile(path);
  if (!file.ok()) return -1;
  const absl::StatusOr<std::int64_t> draws = DrawCount(*file);
  if (!draws.ok() || *draws == 0) return draws.ok() ? 0 : -1;
  const auto numbers = ReadArray<double>(*file, "/a");
  if (!numbers.ok()) return -1;
  bool second = false;
  for (int i = 0; i < *draws; ++i) {
    second = second || (i >= kResumedAt && (*numbers)[i] == kSecond + i);
    if ((*numbers)[i] != (second ? kSecond + i : i)) return -1;
  }
  return static_cast<int>(*draws);
}

std::string WhatIsWrong(const std::string& folder, int promised) {
  const std::string path = folder + kFile;
  if (promised == 0 && !std::filesystem::exists(path)) return "";
  const int found = WholeDraws(path);
  const absl::Status recovered = History::Recover(path);
  const int after = WholeDraws(path);
  if (recovered.ok() && found >= promised - 1 && after >= found) return "";
  return absl::StrCat(promised - 1, " draws were promised, found are ", found, ", after Recover ", after, " ",
                      recovered.message());
}

// Only the history's own two files count, not what an unfinished write left beside them.
base::testing::AfterPowerLoss OncePerFiles(std::set<std::string>& seen) {
  return [&seen](const std::string& folder, int promised) -> std::string {
    const std::string file = folder + kFile,
                      files = absl::StrCat(promised, " ", ReadWholeFile(file).value_or("none"), " ",
                                           ReadWholeFile(file + ".journal").value_or("none"));
    return seen.insert(files).second ? WhatIsWrong(folder, promised) : "";
  };
}

TEST(HistoryPowerLoss, KeepsWhatWasCommitted) {
  std::set<std::string> seen;
  const std::string folder = testing::TempDir() + "/history_power_loss", path = folder + kFile;
  base::RemoveTree(folder);
  std::filesystem::create_directory(folder);
  const PowerLossReport first = LosePower(
      folder, [&](const Mark& promise) { return WriteFirst(path, promise); }, OncePerFiles(seen));
  EXPECT_THAT(first.faults, testing::IsEmpty());
  const PowerLossReport second = LosePower(
      folder, [&](const Mark& promise) { return WriteSecond(path, promise); }, OncePerFiles(seen));
  EXPECT_THAT(second.faults, testing::IsEmpty());
  EXPECT_GT(seen.size(), 50u);
  RecordProperty("operations", first.operations + second.operations);
  RecordProperty("states", static_cast<int>(seen.size()));
}

}  // namespace
}  // namespace plait::data
