// The events of all ranks as one file for Perfetto (ui.perfetto.dev) and chrome://tracing.
//
//   absl::Status written = WriteChromeTrace("trace.json", events_by_rank, {{"program", "test_dist"}});
//
// {"traceEvents": [...], "displayTimeUnit": "ms", "otherData": {...}} with
//   M    process_name "rank R (host)", process_sort_index R, thread_name and thread_sort_index of each track;
//        pid = rank, tid = track
//   X    a span: ts and dur in microseconds on one clock, 0 at the earliest event; args step, bytes,
//        sequence, stage, micro_batch, unit, waited_ms. The part in which the program blocked (waited_ns) is a
//        span "waiting" inside it.
//   C    a counter: args value; Perfetto shows it as a curve
//   s f  an arrow (arguments.link): of a collective from the span of the rank that entered last to the spans of the
//        ranks that waited for it, of a message (arguments.sends) from the sender's span to the receiver's. A
//        pair of events with a unique id for each arrow.
// Format: "Trace Event Format", Google, 2016; the arrows end with "bp": "e" (in the enclosing span).
//
// Within a rank and track, events are sorted by time. A rank's clock is corrected by its offsets (OnTraceClock);
// spans of a track stay nested. Local; the file is written atomically.
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

// Errors of WriteAtomically (data/hdf5/atomic_file.h). `run` becomes "otherData", with the numbers of dropped events.
absl::Status WriteChromeTrace(const std::string& path, absl::Span<const RankEvents> ranks,
                              const std::map<std::string, std::string>& run);

// Converts `ns` from the rank's clock to the clock of the trace: the two offsets are interpolated and extrapolated
// linearly; if they differ by more than a tenth of the time between them (a measurement error), their mean is used.
std::int64_t OnTraceClock(const RankEvents& rank, std::int64_t ns);

// Serializes a rank's events, to be sent to the rank that writes, and back; both ranks must run the same build.
// DataLoss if the bytes are not events.
std::string ToBytes(const RankEvents& rank);
absl::StatusOr<RankEvents> FromBytes(absl::string_view bytes);

}  // namespace plait::data

#endif  // PLAIT_DATA_TRACE_CHROME_TRACE_H_
