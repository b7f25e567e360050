#include "comm/host_processors.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace plait::comm {

int ProcessorsOfRanks(const Communicator& host) {
  std::array<cpu_set_t, 1> mine;
  CPU_ZERO(mine.data());
  sched_getaffinity(0, sizeof(cpu_set_t), mine.data());
  std::vector<cpu_set_t> all(static_cast<std::size_t>(host.size()));
  const auto bytes = static_cast<std::int64_t>(sizeof(cpu_set_t));
  host.AllGather({mine.data(), bytes, DataType::kUInt8}, {all.data(), bytes * host.size(), DataType::kUInt8});
  cpu_set_t together;
  CPU_ZERO(&together);
  for (const cpu_set_t& mask : all) CPU_OR(&together, &together, &mask);
  return std::max(1, CPU_COUNT(&together));
}

}  // namespace plait::comm
