// Processes below this one: started so that they end with it, found and ended when they stay behind.
//
//   ForkOptions options{.standard_input = -1, .standard_output = out, .standard_error = err};
//   PLAIT_ASSIGN_OR_RETURN(const pid_t pid, comm::StartProcess({"mpirun", "-n", "2", "x"}, options));
//
// Linux: PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, /proc. Local; one thread only.
#ifndef PLAIT_COMM_LAUNCH_SUPERVISION_PROCESS_TREE_H_
#define PLAIT_COMM_LAUNCH_SUPERVISION_PROCESS_TREE_H_

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace plait::comm {

struct ForkOptions {
  int standard_input = -1;  // -1: this process's own
  int standard_output = -1;
  int standard_error = -1;
  int signal_at_our_end = SIGTERM;  // what the process gets when this one ends
  sigset_t mask = {};               // blocked signals of the process
  std::vector<std::pair<std::string, std::string>> environment = {};
};

// A process in a group of its own; the first word is looked for on the PATH. NOT_FOUND with the system's
// words if it cannot be started.
absl::StatusOr<pid_t> StartProcess(const std::vector<std::string>& command, const ForkOptions& options);

// From now on orphans below this process become its children.
void AdoptOrphans();

// All processes below this one, children first.
std::vector<pid_t> Descendants();

// SIGKILL to all of them until none is left, and reaps them; at most `seconds`.
void KillDescendants(double seconds);

// Monotonic clock.
double NowSeconds();

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_SUPERVISION_PROCESS_TREE_H_
