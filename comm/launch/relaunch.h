// --nproc=N: the command with which a program that no launcher started starts itself on N ranks of this machine.
// comm/launch/supervision/run_on_ranks.h runs it.
#ifndef PLAIT_COMM_LAUNCH_RELAUNCH_H_
#define PLAIT_COMM_LAUNCH_RELAUNCH_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm/launch/launch_command.h"
#include "comm/launch/starter.h"

namespace plait::comm {

// The ranks find their command in this variable, as a line for a shell.
inline constexpr char kLaunchCommandVariable[] = "PLAIT_LAUNCH_COMMAND";

struct RelaunchOptions {
  int ranks = 1;
  bool as_root = false;        // mpirun must be told that this is meant
  bool set_one_thread = true;  // OMP_NUM_THREADS=1, where it is not set: ranks share the cores
};

// Ranks that are not bound, as many as are asked for. `program` is an absolute path: it cannot be taken for
// an option, and what follows it is the program's.
LaunchPlan RelaunchPlan(const FoundStarter& found, const RelaunchOptions& options, const std::string& program,
                        const std::vector<std::string>& arguments);

// Before `ranks` ranks of this host are started. INVALID_ARGUMENT if they are less than one, or far more than the cores;
// RESOURCE_EXHAUSTED where mpirun may not have the open files (ulimit -n), or write files of the size (ulimit -f), that it
// needs for them: it would hang.
absl::Status CheckRanksOfHost(int ranks);

// mpirun (or what FindStarter finds in its place) with this program and its arguments (argv[0] excluded) on `ranks`
// ranks. Errors of CheckRanksOfHost and CheckAddressSpaceOfRank; NOT_FOUND if there is nothing to start ranks with.
absl::StatusOr<std::vector<std::string>> RelaunchCommand(int ranks, char** argv);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_RELAUNCH_H_
