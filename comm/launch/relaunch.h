// --nproc=N: a program that no launcher started starts itself on N ranks of this machine.
//
//   if (nproc > 1 && comm::DetectLauncher().kind == comm::LauncherKind::kNone) {
//     return comm::RelaunchOnRanks(nproc, argv);      // does not come back if it succeeds
//   }
//
// The ranks find the command in PLAIT_LAUNCH_COMMAND, as a line for a shell.
#ifndef PLAIT_COMM_LAUNCH_RELAUNCH_H_
#define PLAIT_COMM_LAUNCH_RELAUNCH_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "comm/launch/launch_command.h"
#include "comm/launch/starter.h"

namespace plait::comm {

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

// Replaces this process by mpirun (or what FindStarter finds in its place), which runs this program with
// these arguments (argv[0] excluded) on `ranks` ranks. Before MPI is touched. INVALID_ARGUMENT if ranks < 1,
// NOT_FOUND if there is nothing to start ranks with.
absl::Status RelaunchOnRanks(int ranks, char** argv);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_RELAUNCH_H_
