// Saves whose elements tell them apart, and what must be found after a loss of power at any moment of them: for one rank
// (save_power_loss_test.cc) and for several (save_power_loss_ranks_test.cc, save_versions.cc).
#ifndef PLAIT_PARALLEL_CHECKPOINT_TESTING_PLANNED_SAVES_H_
#define PLAIT_PARALLEL_CHECKPOINT_TESTING_PLANNED_SAVES_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "comm/communicator.h"

namespace plait::parallel::testing {

// Below a folder that exists: folders that are not there yet.
inline constexpr char kPlannedRoot[] = "/runs/mine";

// Four saves below FOLDER/runs/mine: the second replaces the first, the third and fourth remove what is older. The
// elements of the n-th are version n of testing_tensors.h. Calls `saved` with n after each. Collective.
absl::Status SaveAsPlanned(const comm::Communicator& world, const std::string& folder,
                           const std::function<void(int version)>& saved);

// "" if the latest checkpoint of `folder` is version `promised` or the next one, and all that look complete are; else
// what is wrong.
std::string WhatIsWrong(const std::string& folder, int promised);

}  // namespace plait::parallel::testing

#endif  // PLAIT_PARALLEL_CHECKPOINT_TESTING_PLANNED_SAVES_H_
