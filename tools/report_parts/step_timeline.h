// One step of a run, rank by rank, from a Chrome trace (Trace Event Format).
//
//   PLAIT_ASSIGN_OR_RETURN(const StepTimeline step, MedianStep("trace.json"));
//   step.ranks[r].lanes[l].bars           // forward, backward, all_reduce ... with begin and end in seconds
//
// A step is all spans named "step" with args {"step": n}, from the first rank's begin to the last rank's end. The step
// of median duration is taken, among the steps recorded by the largest number of ranks. A trace without such spans is
// taken as one step. Spans that enclose others of their lane get a row of their own above them.
//
// A truncated trace (of a killed run) is used as far as it goes. Local; reads the file once, keeps 64 bytes per span.
#ifndef PLAIT_TOOLS_REPORT_PARTS_STEP_TIMELINE_H_
#define PLAIT_TOOLS_REPORT_PARTS_STEP_TIMELINE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace plait::report {

inline constexpr std::size_t kDeepestBar = 63;

struct Bar {
  std::string name;
  double begin_seconds = 0, end_seconds = 0;  // relative to the step's begin
  std::int64_t bytes = -1;                    // -1: not in the trace
  int depth = 0;  // number of bars of the lane that enclose it, at most kDeepestBar
  // Time at its end in which the rank was blocked; -1: not in the trace.
  double waited_seconds = -1;
};

struct Lane {
  std::string name;       // of the trace's track; may be empty
  std::vector<Bar> bars;  // by begin
};

struct RankLanes {
  std::int64_t rank = 0;
  std::string name;  // "rank 0 (host)"
  std::vector<Lane> lanes;
};

struct StepTimeline {
  std::int64_t step = -1;  // -1: the trace has no steps, all of it is shown
  std::int64_t steps = 0;  // number of steps it was chosen from
  double seconds = 0;
  std::vector<RankLanes> ranks;  // ascending
  std::string note;              // if the trace is truncated or says that it is missing events; else empty
};

// NOT_FOUND if there is no file, DATA_LOSS if it is not a regular file, not JSON or has no spans: one line that begins
// with the path.
absl::StatusOr<StepTimeline> MedianStep(const std::string& path);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_STEP_TIMELINE_H_
