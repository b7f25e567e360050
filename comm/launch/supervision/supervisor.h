// Runs a job's command and stays with it to its end.
//
//   PLAIT_ASSIGN_OR_RETURN(const int code,
//                          comm::Supervise({.command = {"mpirun", "-n", "2", ...}, .ranks = 2}));
//
// One thread, one poll loop: the command's output, the agents of its ranks (rank_agent.h), signals, clocks.
// - SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are passed on to the ranks. After the first three the
//   job has `grace_seconds` to end; then SIGTERM and again as long; then SIGKILL for the ranks and the
//   launcher. Another SIGINT, SIGTERM or SIGHUP goes one step further at once; without agents, a second SIGINT is
//   passed on as such, since a rank that saves its state after the first one would not heed SIGTERM.
// - No output for `idle_timeout_seconds`, or a run longer than `timeout_seconds`: SIGTERM, the grace,
//   SIGKILL; exit code 124, and a last line that says which ranks wrote last, and when.
// - A rank failed: the launcher ends the others, and after the grace the supervisor does. The last lines
//   name the rank that failed first, how, and what it wrote last.
// - When this process ends, however it does, so does the job: the kernel sends SIGTERM to the launcher,
//   and the agents end their ranks when they lose the connection. When the command ends, what is left
//   below this process is killed.
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
  bool this_host_only = true;       // where the ranks run
  double idle_timeout_seconds = 0;  // 0: none
  double timeout_seconds = 0;
  double grace_seconds = 10;
  std::string log_folder = {};
  bool label = false;
  std::string name = "launch";  // in front of own lines
  // Whether the command runs the ranks under agents. Without, what mpirun says about the job's end is kept back
  // (launcher_notes.h), signals go to all processes below the command, which itself does not see SIGTERM and SIGINT (of a
  // scheduler that sends them to every process of the job), and a job that has told why it ended has the last word.
  bool agents = true;
};

// The job's exit code: 0; that of the rank that failed first, 128 + signal if it was one; the command's own
// if no rank is known to have failed; 124; 128 + the user's signal. NOT_FOUND if the command cannot be
// started, UNAVAILABLE if logs cannot be written. Call once in a process, with one thread: it changes signal
// handling.
absl::StatusOr<int> Supervise(const SuperviseOptions& options);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_SUPERVISION_SUPERVISOR_H_
