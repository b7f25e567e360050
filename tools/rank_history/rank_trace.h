// The trace of a run over all ranks, with its collectives, on one clock.
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
// Ranks measure their clocks against rank 0's at the start and at the end (comm/launch/clock_offset.h); in
// between the offset is taken to be linear. Collectives come from comm's flight recorder, with bytes and
// sequence number, from the call to its completion, on tracks named after their axis; the part in which the
// rank stood still is marked (waited_ms, and a span "waiting" inside). Arrows join the last rank to come with
// those that waited for it, and each send with its receive. Groups of one rank are left out. The tag of a collective tells
// what its data is of (SetUnits).
//
// Memory is bounded: `max_events` over all ranks, of each rank the latest. Nothing is written before Write.
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

// Of the clock that events have.
std::vector<comm::ClockOffset> MeasureTraceClocks(const comm::Communicator& group);

struct RankTraceOptions {
  std::string path;                   // empty: no trace, every call does nothing
  std::int64_t max_events = 1 << 21;  // 160 MiB on rank 0, up to 400 MB of file
  std::int64_t max_events_of_rank = 1 << 17;
  // How the ranks' clocks are compared. Collective, the same on all ranks.
  std::function<std::vector<comm::ClockOffset>(const comm::Communicator& group)> measure_offsets =
      MeasureTraceClocks;
};

class RankTrace {
 public:
  // Collective.
  static std::unique_ptr<RankTrace> Create(const comm::Communicator& world, const RankTraceOptions& options);

  // For spans; null without a path.
  data::Trace* trace() { return trace_.get(); }

  // Local. Names of what collectives of tag 0, 1, ... are of: units of the model, as the sharding engine tags them.
  void SetUnits(std::vector<std::string> names);

  // Local. Adds the collectives that have completed since the last time. comm remembers the latest 512
  // calls: those that are taken too late, or stay in flight for so long, are counted as dropped. About 0.1 ms.
  void TakeCalls();

  // Collective. Brings all events to rank 0, which writes the file; its errors are agreed by all. `run` on
  // rank 0 is shown as information on the trace. Once, at the end.
  absl::Status Write(const std::map<std::string, std::string>& run);
  // On rank 0, after Write: events of all ranks that are not in the file.
  std::int64_t dropped() const { return dropped_; }

 private:
  RankTrace(comm::Communicator group, const RankTraceOptions& options);
  // What is to be added to this rank's clock at a moment on it to get rank 0's.
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
