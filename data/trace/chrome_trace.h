// The events of all ranks as one file for Perfetto (ui.perfetto.dev) and chrome://tracing.
//
//   absl::Status written = WriteChromeTrace("trace.json", events_by_rank, {{"program", "test_dist"}});
//
// {"traceEvents": [...], "displayTimeUnit": "ms", "otherData": {...}} with
//   M    process_name "rank R (host)", process_sort_index R, thread_name of each track; pid = rank,
//        tid = track
//   X    a span: ts and dur in microseconds on one clock, 0 at the earliest event; args step, bytes,
//        sequence, stage, micro_batch, unit, waited_ms. The part in which the program stood still is a span "waiting" inside it.
//   C    a counter: a number at a moment, args value; Perfetto shows it as a curve
//   s f  an arrow: from the span of the rank that came last to something that ranks do together, to the
//        spans of those that waited for it (arguments.link). A pair per rank that waited, with an id of its
//        own. Of a message (arguments.sends) from the sender's span to the receiver's.
// Format: "Trace Event Format", Google, 2016; the arrows end with "bp": "e" (in the enclosing span).
//
// Within a rank and track, events are sorted by time. The clock of a rank is corrected by its offsets: along
// a straight line, or by their mean where they differ by more than a tenth of the time between them; spans of
// a track stay nested under that. Local; the file appears whole or not at all.
#ifndef PLAIT_DATA_TRACE_CHROME_TRACE_H_
#define PLAIT_DATA_TRACE_CHROME_TRACE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/trace/trace.h"

namespace plait::data {

// Errors of the file: as WriteAtomically (data/hdf5/atomic_file.h). `run` is shown as information on the
// trace.
absl::Status WriteChromeTrace(const std::string& path, absl::Span<const RankEvents> ranks,
                              const std::map<std::string, std::string>& run);

// `ns` of the rank's clock on the clock of the trace.
std::int64_t OnTraceClock(const RankEvents& rank, std::int64_t ns);

// A rank's events as bytes, to be sent to the rank that writes, and back. DataLoss for bytes that are no
// events.
std::string ToBytes(const RankEvents& rank);
absl::StatusOr<RankEvents> FromBytes(absl::string_view bytes);

}  // namespace plait::data

#endif  // PLAIT_DATA_TRACE_CHROME_TRACE_H_
