// What memory programs on this node can still get.
#ifndef PLAIT_PARALLEL_PLAN_AVAILABLE_MEMORY_H_
#define PLAIT_PARALLEL_PLAN_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <string>

namespace plait::parallel {

struct NodeMemory {
  std::int64_t bytes = -1;  // -1: unknown
  std::string limited_by;   // "MemAvailable", or the file of the control group that has less
};

// The least of MemAvailable (proc(5)) and what the memory limits of this process's control group and those
// above it leave: version 2 (memory.max - memory.current) and 1 (memory.limit_in_bytes -
// memory.usage_in_bytes), where memory in use counts less the file pages that the kernel gives up first
// (inactive_file of memory.stat). Local.
NodeMemory AvailableMemory(const std::string& proc = "/proc", const std::string& cgroup = "/sys/fs/cgroup");

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PLAN_AVAILABLE_MEMORY_H_
