// A run of test_dist on the ranks of a session.
#ifndef PLAIT_TOOLS_DIST_TEST_RUN_H_
#define PLAIT_TOOLS_DIST_TEST_RUN_H_

#include "absl/status/status.h"
#include "base/profile.h"
#include "comm/session.h"
#include "tools/dist_test/config.h"

namespace plait::dist_test {

// Collective. Prints where it runs, trains, prints a line per step, then timers, profile, plots and paths of
// the files. Errors, the same on all ranks: a fault on a rank that does not exist, a mesh that does not fit
// the ranks, a device that is missing, files that cannot be written, and parameters that are not bitwise
// identical on all ranks at the end (DATA_LOSS).
absl::Status Run(const Config& config, comm::Session& session, base::Profile& profile);

}  // namespace plait::dist_test

#endif  // PLAIT_TOOLS_DIST_TEST_RUN_H_
