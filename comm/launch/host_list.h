// The hosts of a job as schedulers write them down.
//
//   ExpandSlurmHosts("frontier[001-002,007],login1")   // frontier001 frontier002 frontier007 login1
//   ReadHostFile(std::getenv("PBS_NODEFILE"))          // {"x3001", 4}, {"x3002", 4}
//
// Formats: Slurm's compressed host lists (scontrol show hostnames, SLURM_JOB_NODELIST), several brackets in
// one name included; PBS node files (one line per slot, a host's lines anywhere); Open MPI and MPICH host
// files (host slots=N, host:N, comments behind #). Local.
#ifndef PLAIT_COMM_LAUNCH_HOST_LIST_H_
#define PLAIT_COMM_LAUNCH_HOST_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plait::comm {

struct HostSlots {
  std::string host;
  int slots = 1;  // ranks that the scheduler means to run there
};

// INVALID_ARGUMENT, with the place, for brackets or numbers that do not fit together, and for lists of more
// than 200,000 hosts. The order is the list's; hosts that it names twice come twice.
absl::StatusOr<std::vector<std::string>> ExpandSlurmHosts(absl::string_view list);

// SLURM_TASKS_PER_NODE: "4(x2),1" is 4 4 1. INVALID_ARGUMENT as above.
absl::StatusOr<std::vector<int>> ExpandSlurmCounts(absl::string_view counts);

// The text of a host file, of any of the formats; hosts in the order of their first lines. `name` is for
// errors: INVALID_ARGUMENT with name and line, or without any host.
absl::StatusOr<std::vector<HostSlots>> ParseHostFile(absl::string_view text, absl::string_view name);
// NOT_FOUND if it cannot be read.
absl::StatusOr<std::vector<HostSlots>> ReadHostFile(const std::string& path);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_HOST_LIST_H_
