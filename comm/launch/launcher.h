// Which launcher, if any, started this process: read from the environment, before MPI is touched.
#ifndef PLAIT_COMM_LAUNCH_LAUNCHER_H_
#define PLAIT_COMM_LAUNCH_LAUNCHER_H_

#include <optional>
#include <string>

namespace plait::comm {

// kPmi: MPICH, Hydra and relatives; kPals: Cray's launcher on PBS machines.
enum class LauncherKind { kNone, kOpenMpi, kPals, kPmi, kSlurm, kTorchrun };

struct Launcher {
  LauncherKind kind = LauncherKind::kNone;
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // among the ranks of this node
  int local_size = 1;

  bool starts_mpi() const { return kind != LauncherKind::kNone && kind != LauncherKind::kTorchrun; }
};

// `lookup` gives an environment variable's value, or null: ::getenv in programs, a table in tests.
Launcher DetectLauncher(const char* (*lookup)(const char* name));
Launcher DetectLauncher();

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_LAUNCHER_H_
