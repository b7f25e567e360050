// Which of mpirun, mpiexec and srun starts ranks here.
//
//   PLAIT_ASSIGN_OR_RETURN(const comm::FoundStarter found, comm::FindStarter(in_slurm_job,
//   ProcessCommands())); plan.starter = found.starter;
//
// Outside Slurm it is the first of mpirun and mpiexec on the PATH: its kind is read from what its name leads
// to (mpirun -> mpirun.openmpi -> orterun), else from its --version. In a Slurm job it is srun where it can
// start programs of the MPI that is installed (`srun --mpi=list`: pmix for Open MPI, pmi2 for MPICH), else
// that MPI's own, which starts its daemons through Slurm.
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

// How commands are found and asked: the process's own PATH in programs, tables in tests.
struct Commands {
  // The path behind all links, empty if the PATH has no such command.
  std::function<std::string(const std::string& name)> real_path;
  // What it prints on either output, empty if it cannot be run.
  std::function<std::string(const std::vector<std::string>& command)> output;
};
Commands ProcessCommands();

struct FoundStarter {
  Starter starter = Starter::kOpenMpi;
  std::string executable = "mpirun";
  std::string mpi_plugin = {};  // of srun
  std::string reason = {};      // why this one, a few words
};

// NOT_FOUND with what to install if there is none.
absl::StatusOr<FoundStarter> FindStarter(bool in_slurm_job, const Commands& commands);

// The named one ("mpirun", "mpiexec", "srun"); INVALID_ARGUMENT for other names.
absl::StatusOr<FoundStarter> FindStarterNamed(const std::string& name, const Commands& commands);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_STARTER_H_
