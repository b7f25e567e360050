// Simulated power failures at any point of a save, with any part of the unsynced data lost: checkpoints whose save had
// returned are intact, and every folder with the name of a complete checkpoint is one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/path.h"
#include "base/testing/power_loss.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/save.h"
#include "parallel/checkpoint/step_folders.h"
#include "parallel/checkpoint/testing/testing_tensors.h"

namespace plait::parallel {
namespace {

namespace fs = std::filesystem;

std::vector<TensorSpec> Tensors() {
  return {{"model", "weight", at::kFloat, {5, 6}}, {"model", "bias", at::kDouble, {}}};
}

// The n-th save, whose elements are version n.
struct Planned {
  std::int64_t step;
  int keep_last;
};

// Below folders that are not there yet. The second save replaces the first, the third and fourth remove what
// is older.
constexpr char kRoot[] = "/runs/mine";
constexpr Planned kSaves[] = {{1, 0}, {1, 0}, {2, 1}, {3, 1}};

bool SaveAll(const std::string& folder, const base::testing::Mark& promise) {
  int version = 0;
  for (const Planned& save : kSaves) {
    const testing::OwnedPieces own = testing::RandomPieces(Tensors(), 1, 0, 1, ++version);
    const auto saved = SaveCheckpoint(comm::Communicator::Self(), folder + kRoot, save.step, own.pieces, {},
                                      {.keep_last = save.keep_last});
    if (!saved.ok()) return false;
    promise(version);
  }
  return true;
}

// The version of all elements; 0: none of them.
int VersionIn(const std::string& folder) {
  absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(folder);
  for (int version = 1; checkpoint.ok() && version <= static_cast<int>(std::size(kSaves)); ++version) {
    if (testing::FirstDifference(*checkpoint, Tensors(), 1, version).empty()) return version;
  }
  return 0;
}

std::string WhatIsWrong(const std::string& root, int promised) {
  const absl::StatusOr<std::string> latest = FindLatestCheckpoint(root);
  if (!latest.ok() && (promised > 0 || !absl::IsNotFound(latest.status())))
    return absl::StrCat("version ", promised, " was promised: ", latest.status().message());
  const int found = latest.ok() ? VersionIn(*latest) : 0;
  if (found < promised || found > promised + 1)
    return absl::StrCat(promised, " was promised, found is ", found);
  for (const std::int64_t step : CompleteSteps(root)) {
    if (VersionIn(StepFolder(root, step)) == 0) return absl::StrCat("step ", step, " looks whole and is not");
  }
  return "";
}

TEST(PowerLoss, AtAnyPointOfSaves) {
  const std::string folder = ::testing::TempDir() + "/save_power_loss";
  base::RemoveTree(folder);
  fs::create_directory(folder);
  const base::testing::PowerLossReport report = base::testing::LosePower(
      folder, [&](const base::testing::Mark& promise) { return SaveAll(folder, promise); },
      [](const std::string& after, int promised) { return WhatIsWrong(after + kRoot, promised); });
  EXPECT_THAT(report.faults, ::testing::IsEmpty());
  EXPECT_GT(report.states, 200);
  RecordProperty("operations", report.operations);
  RecordProperty("states", report.states);
}

}  // namespace
}  // namespace plait::parallel
