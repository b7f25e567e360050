// Finds the command that started this process among its ancestors.
#ifndef PLAIT_COMM_LAUNCH_LAUNCH_ANCESTOR_H_
#define PLAIT_COMM_LAUNCH_LAUNCH_ANCESTOR_H_

#include <string>
#include <vector>

namespace plait::comm {

// The nearest launcher (mpirun, mpiexec, srun, torchrun, ...) among `command_lines`, parent first; scripts may be in
// between. If its own parents are launchers or their daemons (srun mpirun ...), the outermost launcher of that chain.
// Quoted for a shell. Empty if there is none.
std::string CommandOfLauncher(const std::vector<std::vector<std::string>>& command_lines);

// /proc/PID/cmdline of this process's parent, grandparent, ..., at most `depth` of them.
std::vector<std::vector<std::string>> AncestorCommands(int depth);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_LAUNCH_ANCESTOR_H_
