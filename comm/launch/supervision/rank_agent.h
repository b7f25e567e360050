// Runs one rank's program and supervises it: `launch` starts every rank under an agent.
//
//   mpirun -n 2 launch --rank-agent train --lr=1      // the agent's arguments: the program and its own
//
// An agent forwards its rank's output to the supervisor (agent_message.h), forwards signals of the supervisor and the
// launcher to the rank, reports how the rank ended, and then ends in the same way. If the supervisor goes away, the
// agent ends the rank (SIGTERM, SIGKILL after 2 s); if the agent is killed, the kernel kills the rank. The rank's
// standard output is a pseudo-terminal, as under Open MPI, so that programs line-buffer it.
//
// Why not the launchers' own labels: Open MPI 4.1 loses output with --tag-output and crashes with --xml where
// tags or escapes make a fragment longer than its buffer (many short lines, box-drawing characters); Cray's and
// Slurm's formats differ; and none of them reports which rank ended first, and how.
#ifndef PLAIT_COMM_LAUNCH_SUPERVISION_RANK_AGENT_H_
#define PLAIT_COMM_LAUNCH_SUPERVISION_RANK_AGENT_H_

#include <string>
#include <vector>

namespace plait::comm {

inline constexpr char kRankAgentArgument[] = "--rank-agent";
// In the message of a rank that runs without its agent.
inline constexpr char kWithoutAgent[] = "runs without its agent";

// Runs `command` and returns its exit code; if a signal killed it, this process raises the same signal. If no
// supervisor answers, prints one line to standard error and replaces this process by `command` (exec); returns 127 if
// that fails.
int RunRankAgent(const std::vector<std::string>& command);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_SUPERVISION_RANK_AGENT_H_
