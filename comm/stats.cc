#include "comm/stats.h"

#include "absl/strings/str_format.h"

namespace plait::comm {

std::string ExportStats(const Stats& stats) {
  std::string text = absl::StrFormat("%-12s %-14s %10s %16s %16s %18s %16s\n", "axis", "operation", "calls",
                                     "payload_bytes", "wire_bytes", "in_flight_seconds", "exposed_seconds");
  for (const auto& [axis, operations] : stats) {
    for (int i = 0; i < kOperations; ++i) {
      const OperationStats& s = operations[i];
      if (s.calls == 0) continue;
      absl::StrAppendFormat(&text, "%-12s %-14s %10d %16d %16d %18.6f %16.6f\n", axis,
                            std::string(Name(static_cast<Operation>(i))), s.calls, s.payload_bytes,
                            s.wire_bytes, s.in_flight_seconds, s.exposed_seconds);
    }
  }
  return text;
}

}  // namespace plait::comm
