// Which launcher, if any, started this process: read from the environment, before MPI is initialised.
//
//   const comm::Launcher launcher = comm::DetectLauncher();
//   if (launcher.starts_mpi()) ...
//
// More about the job (hosts, scheduler, contradictions): comm/launch/job.h.
#ifndef PLAIT_COMM_LAUNCH_LAUNCHER_H_
#define PLAIT_COMM_LAUNCH_LAUNCHER_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace plait::comm {

// An environment variable's value, or null: ::getenv in programs, a table in tests.
using Lookup = std::function<const char*(const char* name)>;
Lookup ProcessEnvironment();

// kPmi: MPICH, Hydra and relatives; kPals: Cray's launcher on PBS machines; kSlurm: srun; kTorchrun: RANK and
// WORLD_SIZE, without MPI.
enum class LauncherKind { kNone, kOpenMpi, kPals, kPmi, kSlurm, kTorchrun };

// "mpirun (Open MPI)", "srun (Slurm)", ..., "no launcher".
const char* NameOf(LauncherKind kind);

struct Launcher {
  LauncherKind kind = LauncherKind::kNone;
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // among the ranks of this node; 0 if the launcher does not set it
  int local_size = 1;  // `size` if the launcher does not set it
  // False if the size is derived: in its PMIx mode Cray PALS sets none; size is local_size times the hosts of
  // PBS_NODEFILE then.
  bool size_told = true;
  bool local_told = true;  // false: the launcher does not set local_rank or local_size

  bool starts_mpi() const { return kind != LauncherKind::kNone && kind != LauncherKind::kTorchrun; }
};

// The first launcher in the order of LauncherKind that has set rank and size. A shell in a Slurm allocation (salloc,
// sbatch, srun --pty) counts as no launcher. Numbers are not validated: DetectJob reports inconsistent ones.
Launcher DetectLauncher(const Lookup& lookup);
Launcher DetectLauncher();

// FAILED_PRECONDITION if srun started this process without PMI, which MPI needs to find its ranks: MPI_Init would print
// pages on every rank without naming the cause. Local.
absl::Status CheckPmi(const Launcher& launcher, const Lookup& lookup);

// FAILED_PRECONDITION if torchrun started more than one process: it starts no MPI, and each would be a job of its own.
// Local.
absl::Status CheckTorchrun(const Launcher& launcher);

// RESOURCE_EXHAUSTED if a limit on address space (ulimit -v) leaves less than the 512 MiB that a rank needs to start
// MPI, which would crash. Local.
absl::Status CheckAddressSpaceOfRank();

// One launcher's variables, whether or not DetectLauncher chooses it.
struct LauncherTrace {
  LauncherKind kind = LauncherKind::kNone;
  std::string rank_variable = {}, size_variable = {};  // names: those that are set, else the usual ones
  bool has_rank = false, has_size = false;
  std::optional<int> rank = {}, size = {};  // nullopt if unset or not an integer
  std::optional<int> local_rank = {}, local_size = {};
  std::optional<int> node_id = {};  // index of this node among the launcher's
  bool size_derived = false;        // !Launcher::size_told
  std::string malformed = {};       // the first variable that is not an integer, "OMPI_COMM_WORLD_RANK=x"
  bool complete() const { return rank.has_value() && size.has_value(); }
};
// One for each launcher that has set a rank or a size, in the order of LauncherKind.
std::vector<LauncherTrace> TracesOfLaunchers(const Lookup& lookup);

// Whether srun started this process, or an ancestor, as a step of a Slurm job. The shells of sbatch, and of salloc
// where it opens one on the first node, have reserved step numbers and do not count.
bool InSlurmStep(const Lookup& lookup);

// Whether srun started this process as a rank: in a step, and with PMI if it is the step's only task. A single task
// without PMI is a shell (srun --pty bash), or a program that starts its own ranks.
bool IsRankOfSrun(const Lookup& lookup);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_LAUNCHER_H_
