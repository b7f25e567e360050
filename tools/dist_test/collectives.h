// test_dist --collectives.
#ifndef PLAIT_TOOLS_DIST_TEST_COLLECTIVES_H_
#define PLAIT_TOOLS_DIST_TEST_COLLECTIVES_H_

#include "absl/status/status.h"
#include "base/log.h"
#include "comm/device_mesh.h"
#include "comm/session.h"
#include "tools/dist_test/config.h"

namespace plait::dist_test {

// Collective. Benchmarks every collective over message sizes and groups, and every pair of ranks
// (tools/collectives_sweep/README.md); prints a table, and writes sweep.h5 and plots into the output
// directory. DATA_LOSS for a wrong result.
absl::Status RunCollectives(const Config& config, const device::DevicePlan& device, comm::Session& session,
                            const comm::DeviceMesh& mesh, const base::Log& log);

}  // namespace plait::dist_test

#endif  // PLAIT_TOOLS_DIST_TEST_COLLECTIVES_H_
