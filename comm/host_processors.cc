#include "comm/host_processors.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/host_name.h"
#include "comm/gathered_text.h"

namespace plait::comm {

int ProcessorsOfHost(const Communicator& world) {
  std::array<cpu_set_t, 1> mine;
  CPU_ZERO(mine.data());
  // Fails, and leaves the mask empty, on machines of more than CPU_SETSIZE processors.
  sched_getaffinity(0, sizeof(cpu_set_t), mine.data());
  std::vector<cpu_set_t> all(static_cast<std::size_t>(world.size()));
  const auto bytes = static_cast<std::int64_t>(sizeof(cpu_set_t));
  world.AllGather({mine.data(), bytes, DataType::kUInt8},
                  {all.data(), bytes * world.size(), DataType::kUInt8});
  const std::vector<std::string> hosts = GatherText(world, base::HostName());
  cpu_set_t together;
  CPU_ZERO(&together);
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    if (hosts[rank] != base::HostName()) continue;
    if (CPU_COUNT(&all[rank]) == 0) return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    CPU_OR(&together, &together, &all[rank]);
  }
  return CPU_COUNT(&together);
}

}  // namespace plait::comm
