// How many processor cores the ranks of a node may use: whether they have one each decides how they wait.
// Private to comm.
#ifndef PLAIT_COMM_MPI_CORES_H_
#define PLAIT_COMM_MPI_CORES_H_

#include <array>
#include <cstdint>
#include <string>

namespace plait::comm {

// One bit per core.
using CoreSet = std::array<std::uint64_t, 128>;

// The cores that this process may run on (sched_getaffinity): what the launcher has bound it to, within the
// cgroup's cpuset.
CoreSet UsableCores();
int CountOf(const CoreSet& cores);

// Cores' worth of time that the process's control groups grant (cpu.max of cgroup v2 and those above it,
// cpu.cfs_quota_us of v1), rounded up; 1 << 30 without a limit. `root` stands before /proc and /sys: "" but
// in tests.
int CoreQuota(const std::string& root = "");

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_CORES_H_
