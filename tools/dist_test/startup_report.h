// What a run logs first: hosts, device, mesh and settings.
#ifndef PLAIT_TOOLS_DIST_TEST_STARTUP_REPORT_H_
#define PLAIT_TOOLS_DIST_TEST_STARTUP_REPORT_H_

#include "base/log.h"
#include "comm/device_mesh.h"
#include "tools/device/device.h"
#include "tools/dist_test/config.h"
#include "tools/training/startup_report.h"

namespace plait::dist_test {

using Place = training::RunEnvironment;

// Collective. Logs the environment of the run (tools/training) and the configuration.
Place Introduce(const Config& config, const device::DevicePlan& device, const comm::DeviceMesh& mesh,
                const base::Log& log);

// Attributes of the files that the run writes.
data::RunFacts FactsOf(const Config& config, const Place& place);

}  // namespace plait::dist_test

#endif  // PLAIT_TOOLS_DIST_TEST_STARTUP_REPORT_H_
