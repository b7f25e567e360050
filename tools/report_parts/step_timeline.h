// One step of a run, rank by rank, from a Chrome trace (Trace Event Format): which work was under way when.
//
//   PLAIT_ASSIGN_OR_RETURN(const StepTimeline step, MedianStep("trace.json"));
//   step.ranks[r].lanes[l].bars           // forward, backward, all_reduce ... with begin and end in seconds
//
// The step shown is the one of median duration among those that every rank has recorded: spans named "step"
// with args {"step": n}, from the first rank's begin to the last one's end. A trace without such spans is
// taken as one step. Spans that lie around others of their lane get a row of their own above them.
//
// A trace that ends in the middle (of a killed run) is used as far as it goes. Local; reads the file once,
// keeps 56 bytes per span.
#ifndef PLAIT_TOOLS_REPORT_PARTS_STEP_TIMELINE_H_
#define PLAIT_TOOLS_REPORT_PARTS_STEP_TIMELINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace plait::report {

struct Bar {
  std::string name;
  double begin_seconds = 0, end_seconds = 0;  // from the step's begin on
  std::int64_t bytes = -1;                    // -1: the trace gives none
  int depth = 0;                              // how many bars of the lane lie around it
  // Its last part, in which the rank stood still; -1: the trace does not tell.
  double waited_seconds = -1;
};

struct Lane {
  std::string name;       // of the trace's track: "" where it has none
  std::vector<Bar> bars;  // by begin
};

struct RankLanes {
  std::int64_t rank = 0;
  std::string name;  // "rank 0 (host)"
  std::vector<Lane> lanes;
};

struct StepTimeline {
  std::int64_t step = -1;  // -1: the trace has no steps, all of it is shown
  std::int64_t steps = 0;  // from how many it was chosen
  double seconds = 0;
  std::vector<RankLanes> ranks;  // ascending
  std::string note;              // what is missing: "the trace ends in the middle", ...; else ""
};

// NotFound, DataLoss (no JSON, no spans): one line that begins with the path.
absl::StatusOr<StepTimeline> MedianStep(const std::string& path);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_STEP_TIMELINE_H_
