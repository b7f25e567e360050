#include "tools/gru_training/solver_options.h"

namespace plait::gru_training {

mgrit::LayerParallelOptions SolverOptions(const Config& config) {
  mgrit::LayerParallelOptions options;
  options.forward.max_levels = config.lp_levels;
  options.forward.cfactors = config.lp_cfactor;
  options.forward.skip_downcycle = config.lp_levels > 1 && !config.lp_use_downcycle;
  // Without a down-sweep, full multigrid is nested iteration: a cycle on each coarse level before the next
  // finer one.
  options.forward.fmg = config.lp_fmg_iterations != 0;
  options.forward.fmg_iterations = config.lp_fmg_iterations;
  options.backward = options.forward;
  options.forward.cf_sweeps = {config.lp_fwd_finerelax, config.lp_fwd_relax};
  options.forward.max_iterations = ForwardIterations(config);
  options.backward.cf_sweeps = {0, config.lp_bwd_relax};
  options.backward.max_iterations = config.lp_iters;
  return options;
}

gru::GruStepOptions StepOptions(const Config& config) {
  gru::GruStepOptions options;
  const bool frozen = config.lp_coarse_step == "frozen";
  options.coarse_step = frozen ? gru::CoarseStep::kFrozenGates : gru::CoarseStep::kOneStep;
  options.coarse_hold = config.lp_coarse_hold;
  return options;
}

absl::Status CheckFits(const Config& config) {
  return mgrit::LayerParallel::Check(SolverOptions(config), config.sequence_length);
}

}  // namespace plait::gru_training
