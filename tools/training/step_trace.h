// What a step adds to the trace: spans of its passes and of the optimizer, curves of loss, norm of the gradients and memory.
#ifndef PLAIT_TOOLS_TRAINING_STEP_TRACE_H_
#define PLAIT_TOOLS_TRAINING_STEP_TRACE_H_

#include <vector>

#include "parallel/pipeline/executor.h"
#include "tools/rank_history/rank_trace.h"
#include "tools/training/trainer.h"

namespace plait::training {

// Behind the step that `report` is of, whose passes `timeline` has. `writes`: the rank that shows what all ranks know
// alike. Local.
void TraceStep(const StepReport& report, const std::vector<parallel::ActionTime>& timeline, bool writes,
               rank_history::RankTrace& trace);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_STEP_TRACE_H_
