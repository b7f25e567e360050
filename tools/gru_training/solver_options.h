// The settings of a run as the solver wants them.
#ifndef PLAIT_TOOLS_GRU_TRAINING_SOLVER_OPTIONS_H_
#define PLAIT_TOOLS_GRU_TRAINING_SOLVER_OPTIONS_H_

#include "absl/status/status.h"
#include "mgrit/layer_parallel/layer_parallel.h"
#include "models/gru/layer_parallel/gru_step.h"
#include "tools/gru_training/config.h"

namespace plait::gru_training {

mgrit::LayerParallelOptions SolverOptions(const Config& config);
gru::GruStepOptions StepOptions(const Config& config);

// Whether levels and factors fit the steps; else names the largest that do.
absl::Status CheckFits(const Config& config);

}  // namespace plait::gru_training

#endif  // PLAIT_TOOLS_GRU_TRAINING_SOLVER_OPTIONS_H_
