// Runs a job's command and supervises it until it ends.
//
//   PLAIT_ASSIGN_OR_RETURN(const int code,
//                          comm::Supervise({.command = {"mpirun", "-n", "2", ...}, .ranks = 2}));
//
// One thread, one poll loop: the command's output, the agents of its ranks (rank_agent.h), signals, timeouts.
// - SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are forwarded to the ranks (SIGINT and SIGHUP not where they are
//   ignored, as under nohup). After SIGINT or SIGHUP the job has
//   `grace_seconds` to end, then gets SIGTERM and as long again; after SIGTERM it has `grace_seconds`. Then the ranks
//   get SIGKILL, and the launcher SIGTERM and 1 s later SIGKILL. Another SIGINT, SIGTERM or SIGHUP goes to the next
//   step at once; without agents, a second SIGINT is forwarded as such, since a rank that saves its state after the
//   first one would ignore SIGTERM.
// - No output for `idle_timeout_seconds` (not counted while this process is suspended), or a run longer than `timeout_seconds`: SIGTERM, SIGKILL after the grace
//   period; exit code 124, and a last line that says which ranks wrote last, and when.
// - If a rank fails, the launcher ends the others, or after the grace period the supervisor does. The last lines
//   name the rank that failed first, how, and its last lines of output.
// - If nobody reads the standard output any more, the job gets SIGTERM. A reader who only stops makes the ranks wait,
//   while signals and timeouts are served; once they end the job, what he does not take is dropped.
// - If this process ends in any way, so does the job: the kernel sends SIGTERM to the launcher (SIGHUP to a shielded
//   one), and the agents end their ranks when they lose the connection. When the command ends, remaining descendants of
//   this process are killed.
#ifndef PLAIT_COMM_LAUNCH_SUPERVISION_SUPERVISOR_H_
#define PLAIT_COMM_LAUNCH_SUPERVISION_SUPERVISOR_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace plait::comm {

inline constexpr int kTimedOut = 124;  // as of timeout(1)

struct SuperviseOptions {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment = {};  // of the command
  int ranks = 1;
  bool this_host_only = true;       // all ranks run on this host
  double idle_timeout_seconds = 0;  // 0: none
  double timeout_seconds = 0;       // 0: none
  double grace_seconds = 10;
  std::string log_folder = {};  // empty: no logs
  bool label = false;           // "[3] " before each line
  std::string name = "launch";  // prefix of the supervisor's own lines
  // Whether the command runs the ranks under agents. If not, mpirun's messages about the job's end are filtered out
  // (launcher_notes.h); signals go to all descendants of the command; and the last line is the job's own if it printed
  // an error.
  bool agents = true;
  // For Open MPI's mpirun, which ends its ranks a second after SIGTERM, SIGINT or SIGHUP: the command has SIGTERM and
  // SIGINT blocked, which a scheduler may send to every process of the job, and gets SIGHUP in their place.
  bool shield_launcher = false;
};

// Returns the job's exit code: 124 after a timeout; 0 if all ranks ended with 0, but 1 if standard output could not be
// written (disk full); 128 + signal if the user ended the job by a signal; that of the rank that failed first (128 +
// signal if killed by one); else the command's own. NOT_FOUND if there is no such command, FAILED_PRECONDITION if it cannot
// be run, UNAVAILABLE if logs cannot be written or no port can be opened, RESOURCE_EXHAUSTED without file descriptors or
// room for a process. Call once per process, before
// starting threads: it changes signal handling.
absl::StatusOr<int> Supervise(const SuperviseOptions& options);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_SUPERVISION_SUPERVISOR_H_
