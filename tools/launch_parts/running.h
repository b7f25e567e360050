// Runs a planned job under supervision.
#ifndef PLAIT_TOOLS_LAUNCH_PARTS_RUNNING_H_
#define PLAIT_TOOLS_LAUNCH_PARTS_RUNNING_H_

#include "absl/status/statusor.h"
#include "comm/launch/supervision/supervisor.h"
#include "tools/launch_parts/planning.h"

namespace plait::launching {

// The plan's command with its ranks under agents, which are this program again, and the printable command in
// their environment.
absl::StatusOr<comm::SuperviseOptions> OptionsToRun(const Settings& settings, const PlannedJob& job);

}  // namespace plait::launching

#endif  // PLAIT_TOOLS_LAUNCH_PARTS_RUNNING_H_
