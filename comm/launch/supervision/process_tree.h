// Child processes that end with this one; finding and killing descendants; which signals to handle for them.
//
//   ForkOptions options{.standard_input = -1, .standard_output = out, .standard_error = err};
//   PLAIT_ASSIGN_OR_RETURN(const pid_t pid, comm::StartProcess({"mpirun", "-n", "2", "x"}, options));
//
// Linux only: PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, /proc. Local; not thread-safe.
#ifndef PLAIT_COMM_LAUNCH_SUPERVISION_PROCESS_TREE_H_
#define PLAIT_COMM_LAUNCH_SUPERVISION_PROCESS_TREE_H_

#include <signal.h>
#include <sys/types.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace plait::comm {

struct ForkOptions {
  int standard_input = -1;  // -1: this process's own
  int standard_output = -1;
  int standard_error = -1;
  int signal_at_our_end = SIGTERM;  // sent to the process when this one ends
  sigset_t mask = {};               // blocked signals of the process
  std::vector<std::pair<std::string, std::string>> environment = {};
};

// Starts a process in its own process group; the first word is searched on the PATH. With the system's error: NOT_FOUND if
// there is no such program, FAILED_PRECONDITION if it cannot be run, RESOURCE_EXHAUSTED if there are too many processes
// or open files.
absl::StatusOr<pid_t> StartProcess(const std::vector<std::string>& command, const ForkOptions& options);

// SIGCHLD and `signals`, but SIGHUP and SIGINT only where this process does not ignore them, as under nohup and in a
// shell's background jobs.
sigset_t HandledSignals(std::initializer_list<int> signals);

// From now on orphaned descendants become children of this process.
void AdoptOrphans();

// All descendants of this process, children before grandchildren.
std::vector<pid_t> Descendants();

// Sends SIGKILL to all descendants and reaps them until none is left, for at most `seconds`.
void KillDescendants(double seconds);

// Monotonic clock.
double NowSeconds();

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_SUPERVISION_PROCESS_TREE_H_
