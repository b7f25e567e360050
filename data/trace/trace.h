// Timed spans of a rank, on tracks: cheap enough to be always on.
//
//   Trace trace;
//   for (std::int64_t step = 0; step < steps; ++step) {
//     TraceSpan whole(&trace, "step", {.step = step});
//     {
//       TraceSpan span(&trace, "forward");
//       ...
//     }
//     trace.Count("loss", Trace::NowNs(), loss);
//   }
//   PLAIT_RETURN_IF_ERROR(WriteChromeTrace("trace.json", {trace.Events()}, {}));  // chrome_trace.h
//
// A span costs about 0.15 microseconds. Memory is bounded: the latest `capacity` events and `capacity` counts are
// kept, the number of older ones is in RankEvents::dropped. Spans of one track must nest, as scopes do; operations
// that overlap freely (in flight) go on separate tracks (TraceLanes).
//
// Local, no communication. Trace is thread-safe.
#ifndef PLAIT_DATA_TRACE_TRACE_H_
#define PLAIT_DATA_TRACE_TRACE_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "data/trace/latest_of.h"

namespace plait::data {

// Shown beside a span; -1: none.
struct TraceArguments {
  std::int64_t step = -1;
  std::int64_t bytes = -1;
  std::int64_t sequence = -1;  // number of a collective within its group
  // For asynchronous operations: how long the program blocked on it, up to its end.
  std::int64_t waited_ns = -1;
  // Identifies an operation of several ranks (a collective or message): the same number on all of them, 0: none.
  // The trace draws arrows between the spans of a link.
  std::uint64_t link = 0;
  std::int32_t stage = -1, micro_batch = -1;  // of a pipeline
  std::int32_t unit = -1;                     // parameter unit: an index into RankEvents::units
  bool sends = false;                         // the link is a message from this rank to the other
};

struct TraceEvent {
  std::int64_t begin_ns = 0;  // on the clock of Trace::NowNs()
  std::int64_t end_ns = 0;
  std::int32_t name = 0;   // index into RankEvents::names
  std::int32_t track = 0;  // index into RankEvents::tracks
  TraceArguments arguments = {};
};

// A value at a point in time: a point of a counter's curve.
struct TraceCount {
  std::int64_t at_ns = 0;  // on the clock of Trace::NowNs()
  std::int64_t name = 0;   // index into RankEvents::names
  double value = 0;
};

// The recorded events of one rank: to be written, or sent to the rank that writes the file.
struct RankEvents {
  int rank = 0;
  std::string host = "";
  // Seconds to add to this rank's clock to get the clock of the trace, measured at two moments of this rank's
  // clock; see OnTraceClock (chrome_trace.h). Equal moments: the first offset is used throughout.
  double moments_seconds[2] = {0, 0};
  double offsets_seconds[2] = {0, 0};
  std::vector<std::string> names = {};
  std::vector<std::string> tracks = {};
  std::vector<std::string> units = {};
  std::vector<TraceEvent> events = {};  // in the order in which they ended
  std::vector<TraceCount> counts = {};
  std::int64_t dropped = 0;  // number of older events and counts that did not fit
};

class Trace {
 public:
  explicit Trace(std::int64_t capacity = 1 << 16);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  static std::int64_t NowNs();  // monotonic, the clock of comm's flight recorder

  // Returns the track of this name, adding it if needed: a row in the viewer, for a thread or a queue of
  // operations. Track 0 is "main".
  int AddTrack(absl::string_view name);
  // Records a span. `name` must outlive the trace and is compared by address: use a string literal.
  void Add(const char* name, int track, std::int64_t begin_ns, std::int64_t end_ns,
           const TraceArguments& arguments = {});
  // Records a counter value; `name` as in Add. NaN and infinities are ignored, as JSON has no numbers for them.
  void Count(const char* name, std::int64_t at_ns, double value);
  // Names of the model's parameter units, which TraceArguments::unit indexes.
  void SetUnits(std::vector<std::string> units);
  // Adds to RankEvents::dropped: events that were lost before they could be added.
  void AddDropped(std::int64_t events);

  // Returns a copy of everything recorded.
  RankEvents Events() const;
  std::int64_t size() const;  // events held

 private:
  std::int32_t NameIndex(const char* name);

  mutable std::mutex mutex_;
  LatestOf<TraceEvent> events_;
  LatestOf<TraceCount> counts_;
  std::int64_t dropped_elsewhere_ = 0;
  std::vector<const char*> names_;
  std::vector<std::string> tracks_ = {"main"}, units_;
};

// Records a span from construction to destruction; no effect if `trace` is null.
class TraceSpan {
 public:
  TraceSpan(Trace* trace, const char* name, const TraceArguments& arguments = {}, int track = 0);
  ~TraceSpan();
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  Trace* trace_;
  const char* name_;
  TraceArguments arguments_;
  int track_;
  std::int64_t begin_ns_;
};

// Tracks for operations that overlap: each goes on the first track ("dp", "dp 2", "dp 3", ... for prefix "dp") that is
// free at its begin. Not thread-safe.
class TraceLanes {
 public:
  TraceLanes(Trace* trace, std::string prefix);

  // Must be called in order of begin_ns.
  void Add(const char* name, std::int64_t begin_ns, std::int64_t end_ns, const TraceArguments& arguments);

 private:
  struct Lane {
    int track;
    std::int64_t free_from_ns;
  };
  Trace* trace_;
  std::string prefix_;
  std::vector<Lane> lanes_;
};

}  // namespace plait::data

#endif  // PLAIT_DATA_TRACE_TRACE_H_
