// Composes the command line that starts the ranks from a plan.
//
//   const std::vector<std::string> words = comm::LaunchCommand(
//       {.starter = comm::Starter::kPals, .executable = "mpiexec", .ranks = 8, .ranks_per_node = 4,
//        .cores_per_rank = 8, .binding = comm::Binding::kDepth, .host_file = "nodes", .program = {"train"}});
//   base::ShellCommand(words);
//   // mpiexec --verbose --envall -n 8 -ppn 4 --hostfile nodes --cpu-bind depth -d 8 train
//
// Options as documented by Open MPI 4 (mpirun), MPICH's Hydra and Intel MPI (mpiexec), Cray PALS (mpiexec)
// and Slurm (srun). Local; nothing is looked up or started here.
#ifndef PLAIT_COMM_LAUNCH_LAUNCH_COMMAND_H_
#define PLAIT_COMM_LAUNCH_LAUNCH_COMMAND_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "comm/launch/host_list.h"

namespace plait::comm {

// What starts the ranks.
enum class Starter { kOpenMpi, kHydra, kPals, kSrun };
const char* NameOf(Starter starter);  // "mpirun (Open MPI)", ...

// CPU binding of a rank. kDepth: cores_per_rank consecutive cores each.
enum class Binding { kNone, kCore, kDepth, kHardwareThread, kSocket, kNuma };
// none, core, depth, hwthread, socket, numa; else INVALID_ARGUMENT with this list.
absl::StatusOr<Binding> ParseBinding(absl::string_view name);
const char* NameOf(Binding binding);

struct LaunchPlan {
  Starter starter = Starter::kOpenMpi;
  std::string executable = "mpirun";  // name or path of the starter
  int ranks = 1;
  int ranks_per_node = 0;  // 0: the starter's default
  bool by_slots = false;   // as many on each host as it has slots there (mpirun's --map-by slot)
  int cores_per_rank = 1;  // for kDepth
  int cpus_per_rank = 1;   // srun's -c: CPUs as Slurm counts them, which may be hardware threads
  Binding binding = Binding::kNone;
  bool oversubscribe = false;         // allow more ranks than cores
  bool as_root = false;               // allow root, which Open MPI refuses by default
  bool this_machine = false;          // Open MPI: not on the hosts of a scheduler's job, but here
  std::string mpi_plugin = {};        // srun's --mpi
  std::vector<HostSlots> hosts = {};  // empty: this machine, or the whole allocation
  std::string host_file = {};  // the same, in the starter's format; preferred to `hosts`, but not by srun
  // Set in the ranks' environment.
  std::vector<std::pair<std::string, std::string>> environment = {};
  // Names of variables to forward from this process (Open MPI's -x). The other starters forward the whole environment.
  std::vector<std::string> passed = {};
  std::vector<std::string> program = {};  // and its arguments
};

// Returns the words of the command line.
std::vector<std::string> LaunchCommand(const LaunchPlan& plan);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_LAUNCH_COMMAND_H_
