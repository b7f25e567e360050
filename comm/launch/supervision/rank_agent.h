// Runs one rank's program and stands by it: `launch` starts every rank under an agent.
//
//   mpirun -n 2 launch --rank-agent train --lr=1      // the agent's arguments: the program and its own
//
// An agent reads what its rank writes, sends it to the supervisor (agent_message.h), passes the supervisor's
// and the launcher's signals on to the rank, and says at the end how the rank ended, in which way it then
// ends itself. If the supervisor goes away the rank is ended; if the agent is killed the kernel kills the
// rank. The rank's standard output is a pseudo-terminal, as under Open MPI, so that programs write line by
// line.
//
// Why not the launchers' own labels: Open MPI 4.1 loses output with --tag-output and crashes with --xml where
// tags or escapes make a piece longer than its buffer (many short lines, box-drawing characters); Cray's and
// Slurm's formats differ, and none of them tells which rank ended first, and how.
#ifndef PLAIT_COMM_LAUNCH_SUPERVISION_RANK_AGENT_H_
#define PLAIT_COMM_LAUNCH_SUPERVISION_RANK_AGENT_H_

#include <string>
#include <vector>

namespace plait::comm {

inline constexpr char kRankAgentArgument[] = "--rank-agent";
// In the line of a rank that goes on without its agent.
inline constexpr char kWithoutAgent[] = "runs without its agent";

// The rank's exit code; ends this process by a signal if the rank ended so. Without a supervisor that answers
// it becomes the program, after one line on standard error.
int RunRankAgent(const std::vector<std::string>& command);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_SUPERVISION_RANK_AGENT_H_
