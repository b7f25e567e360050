// The command that starts ranks, composed from a plan.
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

// What a rank is tied to. kDepth: to cores_per_rank cores, one rank's after the other's.
enum class Binding { kNone, kCore, kDepth, kHardwareThread, kSocket, kNuma };
// none, core, depth, hwthread, socket, numa. INVALID_ARGUMENT with the list.
absl::StatusOr<Binding> ParseBinding(absl::string_view name);
const char* NameOf(Binding binding);

struct LaunchPlan {
  Starter starter = Starter::kOpenMpi;
  std::string executable = "mpirun";  // how the starter is called
  int ranks = 1;
  int ranks_per_node = 0;  // 0: as many as the starter thinks fit
  int cores_per_rank = 1;  // for kDepth, and what srun is asked for
  Binding binding = Binding::kNone;
  bool oversubscribe = false;         // more ranks than cores are meant
  bool as_root = false;               // Open MPI must be told that this is meant
  std::string mpi_plugin = {};        // srun's --mpi
  std::vector<HostSlots> hosts = {};  // empty: this machine, or all of the allocation
  std::string host_file = {};  // names the same hosts, in the starter's own format; preferred to `hosts`
  // Set in the ranks' environment.
  std::vector<std::pair<std::string, std::string>> environment = {};
  // Passed on from the environment of the command. Open MPI would do so on this host only; the others pass on
  // everything.
  std::vector<std::string> passed = {};
  std::vector<std::string> program = {};  // and its arguments
};

// The words of the command line.
std::vector<std::string> LaunchCommand(const LaunchPlan& plan);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_LAUNCH_COMMAND_H_
