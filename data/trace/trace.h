// Where the time of a rank goes, as spans on tracks: cheap enough to be on in every step.
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
// A span costs about 0.15 microseconds. Memory is bounded: of more events than `capacity`, or more counts, the latest are
// kept, and the number of the others is told. Spans of one track must nest, as scopes do; what overlaps
// freely (operations in flight) goes on tracks of its own (TraceLanes).
//
// Local, no messages; every function may be called from any thread.
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
  // Of something that goes on beside the program: for so long, up to its end, the program stood still.
  std::int64_t waited_ns = -1;
  // Names one thing that several ranks do together (a collective): the same on all of them, 0 for none. The
  // written trace joins the spans of a link by an arrow.
  std::uint64_t link = 0;
  std::int32_t stage = -1, micro_batch = -1;  // of a pipeline
  std::int32_t unit = -1;                     // what the data is of: an index into RankEvents::units
  bool sends = false;                         // the link is a message that goes from here to the other rank
};

struct TraceEvent {
  std::int64_t begin_ns = 0;  // on Trace::Now()'s clock
  std::int64_t end_ns = 0;
  std::int32_t name = 0;   // index into RankEvents::names
  std::int32_t track = 0;  // index into RankEvents::tracks
  TraceArguments arguments = {};
};

// A number at a moment: a point of a curve.
struct TraceCount {
  std::int64_t at_ns = 0;  // on Trace::Now()'s clock
  std::int64_t name = 0;   // index into RankEvents::names
  double value = 0;
};

// What one rank has recorded, as a value: to be written, or sent to the rank that writes.
struct RankEvents {
  int rank = 0;
  std::string host = "";
  // Seconds to add to this rank's clock to get the clock of the trace, at two moments of this rank's clock;
  // linear between and beyond. Equal moments: the first offset holds always.
  double moments_seconds[2] = {0, 0};
  double offsets_seconds[2] = {0, 0};
  std::vector<std::string> names = {};
  std::vector<std::string> tracks = {};
  std::vector<std::string> units = {};
  std::vector<TraceEvent> events = {};  // in the order in which they ended
  std::vector<TraceCount> counts = {};
  std::int64_t dropped = 0;  // older ones of both, for which there was no room
};

class Trace {
 public:
  explicit Trace(std::int64_t capacity = 1 << 16);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  static std::int64_t NowNs();  // monotonic, the clock of comm's flight recorder

  // A row of the picture: a thread, or a queue of operations. Track 0 is "main". The same name gives the
  // same track.
  int AddTrack(absl::string_view name);
  // `name` must outlive the trace: a literal.
  void Add(const char* name, int track, std::int64_t begin_ns, std::int64_t end_ns,
           const TraceArguments& arguments = {});
  // `name` as in Add. Nothing for NaN and infinities, which the file has no numbers for.
  void Count(const char* name, std::int64_t at_ns, double value);
  // Of the program's model, say: what TraceArguments::unit counts.
  void SetUnits(std::vector<std::string> units);
  // Events that were lost elsewhere, before they could be added.
  void AddDropped(std::int64_t events);

  // A copy of what is held.
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

// From construction to destruction; nothing for a null trace.
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

// Tracks for operations that overlap: each goes on the first track ("dp 0", "dp 1", ...) that is free by
// then.
class TraceLanes {
 public:
  TraceLanes(Trace* trace, std::string prefix);

  // In the order in which they began.
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
