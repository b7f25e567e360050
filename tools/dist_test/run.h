// A run of test_dist on the ranks of a session.
#ifndef PLAIT_TOOLS_DIST_TEST_RUN_H_
#define PLAIT_TOOLS_DIST_TEST_RUN_H_

#include "absl/status/status.h"
#include "base/profile.h"
#include "comm/session.h"
#include "tools/dist_test/config.h"

namespace plait::dist_test {

// Collective. Says where it runs, trains, prints a line per step, then timers, profile, plots and where the
// files are. Errors, the same on all ranks: a fault on a rank that there is not, files that cannot be
// written, parameters that are not the same bits on all ranks at the end (DATA_LOSS).
absl::Status Run(const Config& config, comm::Session& session, base::Profile& profile);

}  // namespace plait::dist_test

#endif  // PLAIT_TOOLS_DIST_TEST_RUN_H_
