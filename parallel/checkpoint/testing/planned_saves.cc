#include "parallel/checkpoint/testing/planned_saves.h"

#include <cstdint>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/save.h"
#include "parallel/checkpoint/step_folders.h"
#include "parallel/checkpoint/testing/testing_tensors.h"

namespace plait::parallel::testing {
namespace {

struct Planned {
  std::int64_t step;
  int keep_last;
};
constexpr Planned kSaves[] = {{1, 0}, {1, 0}, {2, 1}, {3, 1}};

std::vector<TensorSpec> Tensors() {
  return {{"model", "weight", at::kFloat, {5, 6}}, {"model", "bias", at::kDouble, {}}};
}

// The version of all elements; 0: none of them.
int VersionIn(const std::string& folder) {
  absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(folder);
  for (int version = 1; checkpoint.ok() && version <= static_cast<int>(std::size(kSaves)); ++version) {
    if (FirstDifference(*checkpoint, Tensors(), 1, version).empty()) return version;
  }
  return 0;
}

}  // namespace

absl::Status SaveAsPlanned(const comm::Communicator& world, const std::string& folder,
                           const std::function<void(int version)>& saved) {
  int version = 0;
  for (const Planned& save : kSaves) {
    const OwnedPieces own = RandomPieces(Tensors(), world.size(), world.rank(), 1, ++version);
    PLAIT_RETURN_IF_ERROR(
        SaveCheckpoint(world, folder + kPlannedRoot, save.step, own.pieces, {}, {.keep_last = save.keep_last})
            .status());
    saved(version);
  }
  return absl::OkStatus();
}

std::string WhatIsWrong(const std::string& folder, int promised) {
  const std::string root = folder + kPlannedRoot;
  const absl::StatusOr<std::string> latest = FindLatestCheckpoint(root);
  if (!latest.ok() && (promised > 0 || !absl::IsNotFound(latest.status())))
    return absl::StrCat("version ", promised, " was promised: ", latest.status().message());
  const int found = latest.ok() ? VersionIn(*latest) : 0;
  if (found < promised || found > promised + 1)
    return absl::StrCat(promised, " was promised, found is ", found);
  const absl::StatusOr<std::vector<std::int64_t>> steps = CompleteSteps(root);
  if (!steps.ok()) return std::string(steps.status().message());
  for (const std::int64_t step : *steps) {
    if (VersionIn(StepFolder(root, step)) == 0) return absl::StrCat("step ", step, " looks whole and is not");
  }
  return "";
}

}  // namespace plait::parallel::testing
