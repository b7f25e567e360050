// The spans of a Chrome trace. Private to step_timeline.h.
#ifndef PLAIT_TOOLS_REPORT_PARTS_TRACE_READER_H_
#define PLAIT_TOOLS_REPORT_PARTS_TRACE_READER_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace plait::report::internal {

struct TraceSpan {
  int name = 0;  // into Trace::names
  std::int64_t process = 0, thread = 0;
  double begin_microseconds = 0, duration_microseconds = 0;
  std::int64_t step = -1, bytes = -1;  // of its args; -1: none
  double waited_microseconds = -1;     // likewise
};

struct TraceContent {
  std::vector<std::string> names;
  std::vector<TraceSpan> spans;  // complete ones (ph X), in the order of the file
  std::map<std::int64_t, std::string> process_names;
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> thread_names;
  bool cut_short = false;  // the file ends before its JSON does
};

// An array of events or an object with "traceEvents". NotFound where the file is not there, DataLoss where it
// holds no event at all.
absl::StatusOr<TraceContent> ReadTrace(const std::string& path);

}  // namespace plait::report::internal

#endif  // PLAIT_TOOLS_REPORT_PARTS_TRACE_READER_H_
