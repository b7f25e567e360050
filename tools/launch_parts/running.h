// What launch prints about a planned job, and how it runs it under supervision.
#ifndef PLAIT_TOOLS_LAUNCH_PARTS_RUNNING_H_
#define PLAIT_TOOLS_LAUNCH_PARTS_RUNNING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "comm/launch/supervision/supervisor.h"
#include "tools/launch_parts/planning.h"

namespace plait::launching {

// Options for comm::Supervise: the plan's command with each rank under an agent (this program again), and the command
// without agents in the ranks' environment. Other hosts get this process's environment as it is now: call
// base::TellRanksOfTerminal() before. NOT_FOUND if the path of this program cannot be read.
absl::StatusOr<comm::SuperviseOptions> OptionsToRun(const Settings& settings, const PlannedJob& job);

// Names in `environment`, null-terminated lines NAME=VALUE, that ranks on other hosts must have as well: threads, caches,
// the log, settings of NCCL, UCX, MKL and Plait, and devices unless a scheduler gives each host its own. mpirun passes on
// those that it is told, the other starters all.
std::vector<std::string> PassedVariables(const char* const* environment, comm::Scheduler scheduler);

// Sections [HOSTS], [DIST INFO] (NGPUS NHOSTS NGPU_PER_HOST HOSTFILE DIST_LAUNCH) and [LAUNCH] (SCHEDULER STARTER RANKS
// CORES_PER_HOST BINDING). Without `utf8`, ASCII only.
std::string Summary(const PlannedJob& job, const Surroundings& here, bool utf8);

}  // namespace plait::launching

#endif  // PLAIT_TOOLS_LAUNCH_PARTS_RUNNING_H_
