// Which launcher, if any, started this process: read from the environment, before MPI is touched.
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
  int local_rank = 0;  // among the ranks of this node
  int local_size = 1;  // `size` where the launcher does not tell
  // Cray PALS in its PMIx mode tells no size: it is then local_size on each host of PBS_NODEFILE.
  bool size_told = true;
  bool local_told =
      true;  // false: local_rank or local_size stand as above because the launcher tells nothing

  bool starts_mpi() const { return kind != LauncherKind::kNone && kind != LauncherKind::kTorchrun; }
};

// The first launcher of the list above whose variables are complete. A shell in a Slurm allocation (salloc,
// sbatch) is none. Numbers are taken as they stand: DetectJob reports those that cannot be right.
Launcher DetectLauncher(const Lookup& lookup);
Launcher DetectLauncher();

// FAILED_PRECONDITION where srun has started this process without PMI, by which an MPI finds its ranks: what MPI_Init
// says then are pages on every rank, which do not name the cause. Local.
absl::Status CheckPmi(const Launcher& launcher, const Lookup& lookup);

// RESOURCE_EXHAUSTED where a limit on address space (ulimit -v) leaves this process, or ranks of the same program, less
// than MPI takes to start: it crashes then. Local.
absl::Status CheckAddressSpaceOfRank();

// What one launcher's variables say, whichever launcher DetectLauncher chooses.
struct LauncherTrace {
  LauncherKind kind = LauncherKind::kNone;
  std::string rank_variable = {}, size_variable = {};  // names: those that are set, else the usual ones
  bool has_rank = false, has_size = false;
  std::optional<int> rank = {}, size = {};  // without value where they are not set or no number
  std::optional<int> local_rank = {}, local_size = {};
  std::optional<int> node_id = {};  // index of this node among the launcher's
  bool size_derived = false;        // Launcher::size_told, turned round
  std::string malformed = {};       // "OMPI_COMM_WORLD_RANK=x" of a variable that is no number
  bool complete() const { return rank.has_value() && size.has_value(); }
};
// One for each launcher that has left a rank or a size, the more specific first.
std::vector<LauncherTrace> TracesOfLaunchers(const Lookup& lookup);

// srun started this process, or one above it, as a step of a Slurm job. The shells of sbatch, and of salloc
// where it opens one on the first node, are steps with numbers of their own and do not count.
bool InSlurmStep(const Lookup& lookup);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_LAUNCHER_H_
