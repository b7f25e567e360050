// What a run says first: where it runs, on what, with which settings.
#ifndef PLAIT_TOOLS_DIST_TEST_INTRODUCTION_H_
#define PLAIT_TOOLS_DIST_TEST_INTRODUCTION_H_

#include "base/log.h"
#include "comm/device_mesh.h"
#include "tools/dist_test/config.h"
#include "tools/training/startup_report.h"

namespace plait::dist_test {

using Place = training::RunEnvironment;

// Collective. Prints the place (tools/training) and the configuration.
Place Introduce(const Config& config, const comm::DeviceMesh& mesh, const base::Log& log);

// For the files.
data::RunFacts FactsOf(const Config& config, const Place& place);

}  // namespace plait::dist_test

#endif  // PLAIT_TOOLS_DIST_TEST_INTRODUCTION_H_
