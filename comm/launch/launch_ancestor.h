// The command that started this process, found among the processes above it.
#ifndef PLAIT_COMM_LAUNCH_LAUNCH_ANCESTOR_H_
#define PLAIT_COMM_LAUNCH_LAUNCH_ANCESTOR_H_

#include <string>
#include <vector>

namespace plait::comm {

// The first launcher (mpirun, mpiexec, srun, torchrun, ...) among `command_lines`, parent first: scripts may
// stand between it and this process. If launchers stand right above it (srun mpirun ...), the outermost of
// them. Words that a shell would split are quoted. Empty if there is none.
std::string CommandOfLauncher(const std::vector<std::vector<std::string>>& command_lines);

// /proc/PID/cmdline of this process's parent, its parent, and so on, at most `depth` of them.
std::vector<std::vector<std::string>> AncestorCommands(int depth);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_LAUNCH_ANCESTOR_H_
