// A step of every rank as bars on a common time axis.
#ifndef PLAIT_TOOLS_REPORT_PARTS_TIMELINE_CHART_H_
#define PLAIT_TOOLS_REPORT_PARTS_TIMELINE_CHART_H_

#include <string>

#include "tools/report_parts/step_timeline.h"

namespace plait::report {

// What a bar is about, by its name; the page has a colour for each.
enum class BarKind { kForward, kBackward, kOptimizer, kMessage, kWaiting, kOther };
BarKind KindOfBar(const std::string& name);

// How much of the time in messages passed while the rank also worked: it did not stand still, as the trace
// tells of its messages; of a trace that does not tell: it was in forward, backward or optimizer.
struct Overlap {
  double message_seconds = 0;  // at least one message under way
  double covered_seconds = 0;  // of that, while working; the rest is exposed
};
Overlap OverlapOf(const RankLanes& rank);

// A <figure>: legend, then for each rank its lanes, bars placed in per cent of the width, so that they fit
// any screen; the text of a bar shows where there is room. At most `most_ranks` ranks, the first ones.
std::string TimelineChart(const StepTimeline& timeline, int most_ranks = 32);

}  // namespace plait::report

#endif  // PLAIT_TOOLS_REPORT_PARTS_TIMELINE_CHART_H_
