// What a loss of power can leave of the files that a program writes, and whether its reader copes.
//
//   const PowerLossReport report = LosePower(folder, [&](const Mark& mark) { ...; mark(1); return true; },
//                                            [&](const std::string& folder, int mark) { return WhatIsWrong(folder); });
//   EXPECT_THAT(report.faults, IsEmpty());
//
// The body's file operations are recorded (file_operations.h). For every point between two of them, folders are made as
// they may be found after the power was lost there, and the check is asked about each.
//
// On the disk for certain is only what fsync guarantees by POSIX: a file's contents after the fsync of the file, a name
// in a folder after the fsync of that folder, each as of the call. Of all that came later, any part may be there or
// not, in any order, with two exceptions: changes of the same name in the same folder stay in order, and a rename or
// an exchange in one folder is one change. (Pillai et al., OSDI 2014, call what a program relies on beyond that its
// crash vulnerabilities; Mohan et al., OSDI 2018, check states after each fsync likewise.) Of up to 5 such changes all
// combinations are made; of more: none, all, the first k, each alone, all but each, and 16 at random. Each is made a
// second time with some of its writes cut in half.
#ifndef PLAIT_BASE_TESTING_POWER_LOSS_H_
#define PLAIT_BASE_TESTING_POWER_LOSS_H_

#include <functional>
#include <string>
#include <vector>

#include "base/testing/file_operations.h"

namespace plait::base::testing {

// "" or what is wrong with the folder; `mark` is the last number that the body noted before, 0 for none.
using AfterPowerLoss = std::function<std::string(const std::string& folder, int mark)>;

struct PowerLossReport {
  int operations = 0;  // that were recorded
  int states = 0;      // different ones, checked
  std::vector<std::string>
      faults;  // one line each: where the power was lost, what of it, what the check says
};

// The folder exists, and counts as on the disk with all that is in it. States are made in "FOLDER.after". Checks of
// itself that all recorded operations together give the folder as it is in the end.
PowerLossReport LosePower(const std::string& folder, const std::function<bool(const Mark&)>& body,
                          const AfterPowerLoss& check);

}  // namespace plait::base::testing

#endif  // PLAIT_BASE_TESTING_POWER_LOSS_H_
