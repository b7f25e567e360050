// A Chrome trace of all ranks and their collectives, on one clock.
//
//   std::unique_ptr<RankTrace> trace = RankTrace::Create(world, {.path = "trace.json"});
//   for (std::int64_t step = 0; step < steps; ++step) {
//     {
//       data::TraceSpan span(trace->trace(), "step", {.step = step});
//       ...                                               // spans, collectives
//     }
//     trace->TakeCalls();
//   }
//   PLAIT_RETURN_IF_ERROR(trace->Write(attributes));
//
// Ranks measure their clock offsets to rank 0 at the start and at the end (comm/launch/clock_offset.h) and interpolate
// linearly in between. Collectives come from comm's flight recorder, with bytes and sequence number, from the call to
// its completion, on tracks named after their axis; the time in which the rank was blocked is marked (waited_ms, and a
// span "waiting" inside). Arrows join the last rank to arrive with those that waited for it, and each send with its
// receive. Groups of one rank are left out. The tag of a collective is the index of the model unit it belongs to
// (SetUnits).
//
// Memory is bounded by `max_events` over all ranks; each rank keeps its latest events. Nothing is written before Write.
#ifndef PLAIT_TOOLS_RANK_HISTORY_RANK_TRACE_H_
#define PLAIT_TOOLS_RANK_HISTORY_RANK_TRACE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "comm/communicator.h"
#include "comm/flight_recorder.h"
#include "comm/launch/clock_offset.h"
#include "data/trace/trace.h"

namespace plait::rank_history {

// The default measure_offsets: comm::MeasureClockOffsets on the clock of trace events. Collective.
std::vector<comm::ClockOffset> MeasureTraceClocks(const comm::Communicator& group);

struct RankTraceOptions {
  std::string path;                   // empty: tracing is off, and every call does nothing
  std::int64_t max_events = 1 << 21;  // 160 MiB on rank 0, up to 400 MB of file
  std::int64_t max_events_of_rank = 1 << 17;
  // Measures the ranks' clock offsets. Collective; returns the same on all ranks.
  std::function<std::vector<comm::ClockOffset>(const comm::Communicator& group)> measure_offsets =
      MeasureTraceClocks;
};

class RankTrace {
 public:
  // Collective.
  static std::unique_ptr<RankTrace> Create(const comm::Communicator& world, const RankTraceOptions& options);

  // Add spans to it; null if tracing is off.
  data::Trace* trace() { return trace_.get(); }

  // Local. Names of the model's units, by the tag that the sharding engine gives their collectives.
  void SetUnits(std::vector<std::string> names);

  // Local. Adds the collectives that completed since the last call. Call it at least once every 512 communication
  // calls, which is how many comm's flight recorder keeps: older ones count as dropped. About 0.1 ms.
  void TakeCalls();

  // Collective. Sends all events to rank 0, which writes the file; its errors are returned on all ranks. Rank 0's `run`
  // is added to the trace as metadata. Call it once, at the end.
  absl::Status Write(const std::map<std::string, std::string>& run);
  // On rank 0, after Write: the number of events of all ranks that are missing from the file.
  std::int64_t dropped() const { return dropped_; }

 private:
  RankTrace(comm::Communicator group, const RankTraceOptions& options);
  // The offset to add to this rank's clock, at a time on it, to get rank 0's clock.
  struct ClockMoment {
    double at_seconds = 0;
    double offset_seconds = 0;
  };
  ClockMoment MeasureClock() const;  // collective
  data::RankEvents OwnEvents(const ClockMoment& end) const;
  absl::Status Collect(const std::string& bytes, const std::map<std::string, std::string>& run);

  comm::Communicator group_;
  RankTraceOptions options_;
  std::unique_ptr<data::Trace> trace_;
  std::map<std::string, data::TraceLanes> lanes_;  // by axis
  int units_ = 0;
  // Messages so far by group, sender, receiver and tag: the n-th send meets the n-th receive. Without a value
  // where calls were dropped, which may have been messages.
  using MessageCounts = std::map<std::tuple<std::uint64_t, int, int, int>, std::uint64_t>;
  void ForgetBefore(std::int64_t oldest);
  std::uint64_t LinkOf(const comm::CallRecord& call, const comm::RecordedGroup& group);
  std::optional<MessageCounts> messages_ = MessageCounts();
  std::int64_t next_call_ = 0;
  std::map<std::int64_t, std::uint64_t> in_flight_;  // calls before next_call_ and their links
  std::int64_t dropped_ = 0;
  ClockMoment start_;
};

}  // namespace plait::rank_history

#endif  // PLAIT_TOOLS_RANK_HISTORY_RANK_TRACE_H_
