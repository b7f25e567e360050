// --nproc=N: composes the command by which a program restarts itself on N ranks of this machine.
// comm/launch/supervision/run_on_ranks.h runs it.
#ifndef PLAIT_COMM_LAUNCH_RELAUNCH_H_
#define PLAIT_COMM_LAUNCH_RELAUNCH_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm/launch/launch_command.h"
#include "comm/launch/launcher.h"
#include "comm/launch/starter.h"

namespace plait::comm {

// Environment variable of the ranks that holds the command, as a shell command line.
inline constexpr char kLaunchCommandVariable[] = "PLAIT_LAUNCH_COMMAND";

struct RelaunchOptions {
  int ranks = 1;
  std::string host_in_job = {};  // HostInJob
  bool as_root = false;          // allow root, which Open MPI refuses by default
  bool set_one_thread = true;    // sets OMP_NUM_THREADS=1: ranks share the cores
};

// In a job of a scheduler (Slurm, PBS, Grid Engine, LSF), over whose hosts the starters would distribute the ranks: the
// name of this host there; else empty.
std::string HostInJob(const Lookup& lookup);

// A plan for options.ranks ranks on this machine, unbound and oversubscribed if necessary. `program` must be an
// absolute path, so that mpirun does not take it for an option.
LaunchPlan RelaunchPlan(const FoundStarter& found, const RelaunchOptions& options, const std::string& program,
                        const std::vector<std::string>& arguments);

// Checks that `ranks` ranks can be started on this host. INVALID_ARGUMENT if they are fewer than one or more than 32
// per core; RESOURCE_EXHAUSTED if the limit on open files (ulimit -n) or on the size of a file (ulimit -f) is too
// low for mpirun, which would hang. Local.
absl::Status CheckRanksOfHost(int ranks);

// Returns the command that runs this program with its arguments (argv[0] excluded) on `ranks` ranks under mpirun, or
// the starter found in its place. Errors of CheckTorchrun, CheckRanksOfHost and CheckAddressSpaceOfRank; NOT_FOUND if
// there is no starter.
absl::StatusOr<std::vector<std::string>> RelaunchCommand(int ranks, char** argv);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_RELAUNCH_H_
