// --nproc=N: restarts a program that no launcher started on N ranks of this machine, and waits for them.
//
//   if (nproc > 1 && comm::DetectLauncher().kind == comm::LauncherKind::kNone) {
//     return comm::RunOnRanks(nproc, argv);      // the exit code of main
//   }
//
// The ranks find the command in PLAIT_LAUNCH_COMMAND, as a shell command line.
#ifndef PLAIT_COMM_LAUNCH_SUPERVISION_RUN_ON_RANKS_H_
#define PLAIT_COMM_LAUNCH_SUPERVISION_RUN_ON_RANKS_H_

namespace plait::comm {

// Runs this program with its arguments under mpirun (or the starter found in its place) through Supervise, without
// agents: the last line is the job's own error, not mpirun's; ^C prints "interrupted" and returns 130. After a signal
// the ranks have `grace_seconds` to end. Call before MPI is initialised and before threads are started. Returns the
// job's exit code; if nothing can be started, prints why and returns 1.
int RunOnRanks(int ranks, char** argv, double grace_seconds = 10);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_SUPERVISION_RUN_ON_RANKS_H_
