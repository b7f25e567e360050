// How many cores the ranks of a node may use: decides whether waiting ranks may poll.
// Private to comm.
#ifndef PLAIT_COMM_MPI_CORES_H_
#define PLAIT_COMM_MPI_CORES_H_

#include <array>
#include <cstdint>
#include <string>

namespace plait::comm {

// One bit per core.
using CoreSet = std::array<std::uint64_t, 128>;

// The cores that this process may run on (sched_getaffinity): the launcher's binding and the cgroup's cpuset.
CoreSet UsableCores();
int CountOf(const CoreSet& cores);

// The CPU quota of the process's control groups in cores, rounded up: cpu.max of its cgroup v2 and all ancestors, and
// cpu.cfs_quota_us of the cgroup v1 root; 1 << 30 without a limit. `root` is prepended to /proc and /sys, in tests.
int CoreQuota(const std::string& root = "");

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_CORES_H_
