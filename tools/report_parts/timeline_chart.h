// A step of every rank as bars on a common time axis.
#ifndef PLAIT_TOOLS_REPORT_PARTS_TIMELINE_CHART_H_
#define PLAIT_TOOLS_REPORT_PARTS_TIMELINE_CHART_H_

#include <string>

#include "tools/report_parts/step_timeline.h"

namespace plait::report {

// The kind of a bar, by its name; the page has a colour for each.
enum class BarKind { kForward, kBackward, kOptimizer, kMessage, kWaiting, kOther };
BarKind KindOfBar(const std::string& name);

// How much of the communication time overlaps with computation: time in which the rank was not blocked, according to
// the trace's waiting times; if any message lacks them, time in forward, backward or optimizer.
struct Overlap {
  double message_seconds = 0;  // with at least one message in flight
  double covered_seconds = 0;  // of that, overlapped with computation; the rest is exposed
};
Overlap OverlapOf(const RankLanes& rank);

// A <figure>: legend, then the lanes of each rank, with bars placed in per cent of the width, so that they fit any
// screen; the text of a bar shows if there is room. Shows the first `most_ranks` ranks.
std::string TimelineChart(const StepTimeline& timeline, int most_ranks = 32);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_TIMELINE_CHART_H_
