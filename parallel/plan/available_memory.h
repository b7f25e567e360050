// How much memory is still available on this node.
#ifndef PLAIT_PARALLEL_PLAN_AVAILABLE_MEMORY_H_
#define PLAIT_PARALLEL_PLAN_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <string>

namespace plait::parallel {

struct NodeMemory {
  std::int64_t bytes = -1;  // -1: unknown
  std::string limited_by;   // "MemAvailable", or the limit file of the cgroup that has less
};

// The minimum of MemAvailable (proc(5)) and what the memory limits of this process's cgroup and its ancestors leave:
// version 2 (memory.max - memory.current) and version 1 (memory.limit_in_bytes - memory.usage_in_bytes). Page cache
// that the kernel reclaims first (memory.stat: inactive_file, version 1 total_inactive_file) counts as free. Local.
NodeMemory AvailableMemory(const std::string& proc = "/proc", const std::string& cgroup = "/sys/fs/cgroup");

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PLAN_AVAILABLE_MEMORY_H_
