// From what the user wants and what there is to the plan of a job.
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
  int cores = 1;  // of a host: physical ones that this process may use
  bool as_root = false;
  bool threads_set = false;                                    // OMP_NUM_THREADS is in the environment
  std::function<bool(const std::string& host)> resolves = {};  // the name of a host
};

// Of this process. The errors of comm::FindStarter.
absl::StatusOr<Surroundings> ReadSurroundings(const Settings& settings);

struct PlannedJob {
  comm::LaunchPlan plan;
  std::vector<comm::HostSlots> hosts;  // that run ranks
  bool this_host_only = true;
  int devices_per_host = 0;
  std::string host_file;  // empty: none
};

// A dry run needs no program. INVALID_ARGUMENT or NOT_FOUND in one line: numbers that contradict each other, a host that
// is not in the job or that nobody knows, a program that is not there, a job whose environment is incomplete, launch under
// a launcher.
absl::StatusOr<PlannedJob> PlanJob(const Settings& settings, const Surroundings& here);

// The least that a host of a job has, from Slurm's SLURM_JOB_CPUS_PER_NODE ("72(x2),36") or PBS's NCPUS ("32", of a host):
// launch may run on a login node, with other cores, or see more cores than the job has. `otherwise` if there is no such text.
int AllocatedCores(const char* per_node, int otherwise);

// Physical cores among the processors that this process may use.
int UsableCores();

}  // namespace plait::launching

#endif  // PLAIT_TOOLS_LAUNCH_PARTS_PLANNING_H_
