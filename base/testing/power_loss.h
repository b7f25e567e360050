// Simulates power loss: which file states a crash can leave, and whether the reader handles each of them.
//
//   const PowerLossReport report = LosePower(folder, [&](const Mark& mark) { ...; mark(1); return true; },
//                                            [&](const std::string& folder, int mark) { return WhatIsWrong(folder); });
//   EXPECT_THAT(report.faults, IsEmpty());
//
// The body's file operations are recorded (file_operations.h). For every point between two of them, the directories
// that a power loss there could leave are created, and the check runs on each.
//
// Only what POSIX guarantees for fsync is durable: a file's contents after fsync of the file, a name after fsync of its
// directory, each as of the call. Any subset of the later changes may be present, in any order, with two exceptions:
// changes of the same name in the same directory stay in order, and a rename or exchange within a directory is atomic.
// (Pillai et al., OSDI 2014, call reliance on more than that a crash vulnerability; Mohan et al., OSDI 2018, also check
// states after each fsync.) With up to 5 such changes all subsets are tried; with more: none, all, the first k, each
// alone, all but one, and 16 random subsets. Each subset is tried a second time with some of its writes cut in half.
#ifndef PLAIT_BASE_TESTING_POWER_LOSS_H_
#define PLAIT_BASE_TESTING_POWER_LOSS_H_

#include <functional>
#include <string>
#include <vector>

#include "base/testing/file_operations.h"

namespace plait::base::testing {

// Returns "" or what is wrong with the folder; `mark` is the last number that the body recorded before, 0 for none.
using AfterPowerLoss = std::function<std::string(const std::string& folder, int mark)>;

struct PowerLossReport {
  int operations = 0;  // recorded
  int states = 0;      // distinct states checked
  std::vector<std::string>
      faults;  // one line each: where the power was lost, what of it, what the check says
};

// `folder` must exist; its initial contents count as durable. States are created in "FOLDER.after". Aborts
// (PLAIT_CHECK) if replaying the recorded operations does not give the folder's final contents.
PowerLossReport LosePower(const std::string& folder, const std::function<bool(const Mark&)>& body,
                          const AfterPowerLoss& check);

}  // namespace plait::base::testing

#endif  // PLAIT_BASE_TESTING_POWER_LOSS_H_
