// Chooses which of mpirun, mpiexec and srun starts the ranks.
//
//   PLAIT_ASSIGN_OR_RETURN(const comm::FoundStarter found,
//                          comm::FindStarter(in_slurm_job, comm::ProcessCommands()));
//   plan.starter = found.starter;
//
// Outside Slurm: mpirun, else mpiexec, from the PATH; which implementation it belongs to is read from the target of its
// symbolic links (mpirun -> mpirun.openmpi -> orterun), else from its --version. In a Slurm job: srun, if it supports
// the installed MPI (`srun --mpi=list`: pmix for Open MPI, pmi2 for MPICH) or there is no other starter; else that
// MPI's own, which starts its daemons through Slurm.
#ifndef PLAIT_COMM_LAUNCH_STARTER_H_
#define PLAIT_COMM_LAUNCH_STARTER_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "comm/launch/launch_command.h"

namespace plait::comm {

// Access to commands: ProcessCommands() in programs, tables in tests.
struct Commands {
  // The path of a command with symbolic links resolved; empty if it is not on the PATH.
  std::function<std::string(const std::string& name)> real_path;
  // Its standard output and standard error; empty if it fails.
  std::function<std::string(const std::vector<std::string>& command)> output;
};
Commands ProcessCommands();

struct FoundStarter {
  Starter starter = Starter::kOpenMpi;
  std::string executable = "mpirun";
  std::string mpi_plugin = {};  // of srun
  std::string reason = {};      // why this one, a few words
};

// NOT_FOUND if there is none, or none of a known implementation; the message says what to install.
absl::StatusOr<FoundStarter> FindStarter(bool in_slurm_job, const Commands& commands);

// The starter of this name: "mpirun", "mpiexec" or "srun", else INVALID_ARGUMENT. NOT_FOUND if it is not on the PATH.
absl::StatusOr<FoundStarter> FindStarterNamed(const std::string& name, const Commands& commands);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_STARTER_H_
