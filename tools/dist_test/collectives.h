// test_dist --collectives.
#ifndef PLAIT_TOOLS_DIST_TEST_COLLECTIVES_H_
#define PLAIT_TOOLS_DIST_TEST_COLLECTIVES_H_

#include "absl/status/status.h"
#include "base/log.h"
#include "comm/device_mesh.h"
#include "comm/session.h"
#include "tools/dist_test/config.h"

namespace plait::dist_test {

// Collective. Sweeps every collective over sizes and groups, and measures every pair of ranks
// (tools/collectives_sweep/README.md); table to standard output, sweep.h5 and plots into the folder of
// outputs. DATA_LOSS for a wrong result.
absl::Status RunCollectives(const Config& config, comm::Session& session, const comm::DeviceMesh& mesh,
                            const base::Log& log);

}  // namespace plait::dist_test

#endif  // PLAIT_TOOLS_DIST_TEST_COLLECTIVES_H_
