// A run of test_dist on the ranks of a session.
#ifndef PLAIT_TOOLS_DIST_TEST_RUN_H_
#define PLAIT_TOOLS_DIST_TEST_RUN_H_

#include "absl/status/status.h"
#include "base/profile.h"
#include "comm/session.h"
#include "tools/dist_test/config.h"

namespace plait::dist_test {

// Collective. Trains, or with --collectives runs the sweep, and prints where it runs, a line per step, then timers,
// profile, plots and paths of the files. Errors are the same on all ranks: INVALID_ARGUMENT for a --fault-rank that
// does not exist or a mesh that does not fit the ranks; DATA_LOSS if parameters are not bitwise identical on all ranks
// at the end; errors of SelectDevice, of RunSweep, and of files that cannot be written.
absl::Status Run(const Config& config, comm::Session& session, base::Profile& profile);

}  // namespace plait::dist_test

#endif  // PLAIT_TOOLS_DIST_TEST_RUN_H_
