// --nproc=N: a program that no launcher started starts itself on N ranks of this machine and stays with them.
//
//   if (nproc > 1 && comm::DetectLauncher().kind == comm::LauncherKind::kNone) {
//     return comm::RunOnRanks(nproc, argv);      // the exit code of main
//   }
//
// The ranks find the command in PLAIT_LAUNCH_COMMAND, as a line for a shell.
#ifndef PLAIT_COMM_LAUNCH_SUPERVISION_RUN_ON_RANKS_H_
#define PLAIT_COMM_LAUNCH_SUPERVISION_RUN_ON_RANKS_H_

namespace plait::comm {

// Runs mpirun (or what FindStarter finds in its place) with this program and its arguments, as Supervise does without
// agents: the job's own error is the last line, not mpirun's, and ^C is "interrupted" and 130. After a signal the ranks
// have `grace_seconds` to end. Before MPI is touched and threads are started. The job's exit code; 1 after a line on
// standard error where nothing can be started.
int RunOnRanks(int ranks, char** argv, double grace_seconds = 10);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_SUPERVISION_RUN_ON_RANKS_H_
