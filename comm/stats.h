// Traffic and time of a process's communication, per axis and operation.
//
//   std::fputs(comm::ExportStats(world.stats()).c_str(), stdout);
//
//   axis  operation   calls  payload_bytes  wire_bytes  in_flight_seconds  exposed_seconds
//   tp    all_reduce    240      173506560   173506560           0.512311         0.498120
//
// Communicators of the same name count as one axis. Local: each rank has its own numbers.
#ifndef PLAIT_COMM_STATS_H_
#define PLAIT_COMM_STATS_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "comm/operation.h"

namespace plait::comm {

struct OperationStats {
  std::int64_t calls = 0;
  std::int64_t payload_bytes = 0;
  std::int64_t wire_bytes = 0;   // sent by this rank; see WireBytes
  double in_flight_seconds = 0;  // from the call to its completion
  double exposed_seconds = 0;    // of these, the program was blocked
};

using AxisStats = std::array<OperationStats, kOperations>;  // by Operation
using Stats = std::map<std::string, AxisStats>;             // by axis

// A header, then one line per axis and operation that was called, as above.
std::string ExportStats(const Stats& stats);

}  // namespace plait::comm

#endif  // PLAIT_COMM_STATS_H_
