// Plans a job from the flags, the scheduler's job and this machine.
//
//   PLAIT_ASSIGN_OR_RETURN(const Surroundings here, ReadSurroundings(settings));
//   PLAIT_ASSIGN_OR_RETURN(const PlannedJob job, PlanJob(settings, here));
//   base::ShellCommand(comm::LaunchCommand(job.plan));
#ifndef PLAIT_TOOLS_LAUNCH_PARTS_PLANNING_H_
#define PLAIT_TOOLS_LAUNCH_PARTS_PLANNING_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "comm/launch/job.h"
#include "comm/launch/launch_command.h"
#include "comm/launch/starter.h"
#include "tools/launch_parts/flags.h"

namespace plait::launching {

struct Surroundings {
  comm::Job job = {};
  comm::FoundStarter starter = {};
  int cores = 1;       // of a host: physical ones that this process may use
  int slurm_cpus = 0;  // of a host, as Slurm counts them: cores or hardware threads; 0: outside Slurm
  bool as_root = false;
  bool threads_set = false;           // OMP_NUM_THREADS is in the environment
  std::string unread_scheduler = {};  // UnreadScheduler(): of whose job this process is
  std::function<bool(const std::string& host)> resolves = {};  // the name of a host
};

// The surroundings of this process. Errors of comm::FindStarter, or of FindStarterNamed with --starter.
absl::StatusOr<Surroundings> ReadSurroundings(const Settings& settings);

struct PlannedJob {
  comm::LaunchPlan plan;
  std::vector<comm::HostSlots> hosts;  // that run ranks
  bool this_host_only = true;
  comm::Scheduler scheduler = comm::Scheduler::kLocal;
  int devices_per_host = 0;
  std::string host_file;  // empty: none
};

// Local. A dry run needs no program. Errors are one line: INVALID_ARGUMENT for contradictory numbers, a binding that
// does not fit, a host that is not in the job or does not resolve, an incomplete job environment, or launch started by
// a launcher, or the job of a scheduler whose hosts are not read, without a host file; NOT_FOUND for a missing program;
// errors of comm::ReadHostFile and comm::CheckRanksOfHost.
absl::StatusOr<PlannedJob> PlanJob(const Settings& settings, const Surroundings& here);

// A scheduler that comm::Job does not know: "Grid Engine", "LSF", or "".
std::string UnreadScheduler(const comm::Lookup& lookup);

// The fewest cores of any host of a job, from Slurm's SLURM_JOB_CPUS_PER_NODE ("72(x2),36") or PBS's NCPUS ("32", per
// host); `otherwise` if `per_node` is null or cannot be parsed. Needed because launch may run on a login node, with
// other cores, or see more cores than the job has.
int AllocatedCores(const char* per_node, int otherwise);

// Physical cores among the processors that this process may use.
int UsableCores();

}  // namespace plait::launching

#endif  // PLAIT_TOOLS_LAUNCH_PARTS_PLANNING_H_
