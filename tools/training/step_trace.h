// Adds a training step to the trace: spans of its passes and of the optimizer; curves of loss, gradient norm and
// memory.
#ifndef PLAIT_TOOLS_TRAINING_STEP_TRACE_H_
#define PLAIT_TOOLS_TRAINING_STEP_TRACE_H_

#include <vector>

#include "parallel/pipeline/executor.h"
#include "tools/rank_history/rank_trace.h"
#include "tools/training/trainer.h"

namespace plait::training {

// Call after the step that `report` and `timeline` describe. `writes`: whether this rank adds the curves that are the
// same on all ranks. Does nothing if the trace is off. Local.
void TraceStep(const StepReport& report, const std::vector<parallel::ActionTime>& timeline, bool writes,
               rank_history::RankTrace& trace);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_STEP_TRACE_H_
