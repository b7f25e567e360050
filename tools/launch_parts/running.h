// What launch prints about a planned job, and how it runs it under supervision.
#ifndef PLAIT_TOOLS_LAUNCH_PARTS_RUNNING_H_
#define PLAIT_TOOLS_LAUNCH_PARTS_RUNNING_H_

#include <string>

#include "absl/status/statusor.h"
#include "comm/launch/supervision/supervisor.h"
#include "tools/launch_parts/planning.h"

namespace plait::launching {

// The plan's command with its ranks under agents, which are this program again, and the printable command in
// their environment.
absl::StatusOr<comm::SuperviseOptions> OptionsToRun(const Settings& settings, const PlannedJob& job);

// `utf8`: the output shows more than ASCII. [HOSTS] and [DIST INFO] (NGPUS NHOSTS NGPU_PER_HOST HOSTFILE
// DIST_LAUNCH), then what the choice rests on.
std::string Summary(const PlannedJob& job, const Surroundings& here, bool utf8);

}  // namespace plait::launching

#endif  // PLAIT_TOOLS_LAUNCH_PARTS_RUNNING_H_
