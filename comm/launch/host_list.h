// Parsers for host lists and host files of schedulers and MPI launchers.
//
//   ExpandSlurmHosts("frontier[001-002,007],login1")   // frontier001 frontier002 frontier007 login1
//   ReadHostFile(std::getenv("PBS_NODEFILE"))          // {"x3001", 4}, {"x3002", 4}
//
// Formats: Slurm's compressed host lists (scontrol show hostnames, SLURM_JOB_NODELIST), several brackets in
// one name included; PBS node files (one line per slot, in any order); Open MPI and MPICH host files
// (host slots=N, host:N, comments after #). Local.
#ifndef PLAIT_COMM_LAUNCH_HOST_LIST_H_
#define PLAIT_COMM_LAUNCH_HOST_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plait::comm {

struct HostSlots {
  std::string host;
  int slots = 1;  // number of ranks to run there
};

// Hosts in the order of the list; duplicates are kept. INVALID_ARGUMENT for malformed brackets or ranges and for more
// than 200,000 hosts.
absl::StatusOr<std::vector<std::string>> ExpandSlurmHosts(absl::string_view list);

// SLURM_TASKS_PER_NODE: "4(x2),1" is 4 4 1. INVALID_ARGUMENT as above.
absl::StatusOr<std::vector<int>> ExpandSlurmCounts(absl::string_view counts);

// Parses a host file in any of the formats; hosts in the order of their first lines, with the sum of their slots.
// INVALID_ARGUMENT, with `name` and line, for malformed lines, and if the file names no host.
absl::StatusOr<std::vector<HostSlots>> ParseHostFile(absl::string_view text, absl::string_view name);
// The same for a file; also NOT_FOUND if it cannot be opened.
absl::StatusOr<std::vector<HostSlots>> ReadHostFile(const std::string& path);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_HOST_LIST_H_
