#include "tools/training/layer_parallel_settings.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/training/settings.h"

namespace plait::training {

void LayerParallelSettings::Bind(SettingsTable& table) {
  table.Group("Layer-parallel solver");
  const auto add = [&](const char* name, base::BoundFlag::Value value, const char* help) {
    table.Add(name, value, help, OnResume::kAdopt);
  };
  add("force_lp", &force, "uses the layer-parallel solver on one rank, too");
  add("lp_levels", &levels, "levels of the time grid");
  add("lp_iters", &iterations, "iterations backward, and forward without --lp-fwd-iters");
  add("lp_fwd_iters", &forward_iterations, "iterations forward; -1: as --lp-iters");
  add("lp_cfactor", &cfactor, "coarsening factor, or one for each level from the finest on: 4,2");
  add("lp_use_downcycle", &use_downcycle,
      "begin on the finest level; without it the first iteration begins on the coarsest");
  add("lp_fmg_iterations", &fmg_iterations,
      "how many iterations of a solve are full multigrid, with a cycle on each coarse level before the next "
      "finer one; -1: all");
  add("lp_fwd_finerelax", &forward_finest_sweeps,
      "CF-sweeps after the F-sweep on the finest level, forward: 0 is F-, 1 is FCF-relaxation");
  add("lp_fwd_relax", &forward_sweeps, "the same on the other levels");
  add("lp_bwd_relax", &backward_sweeps,
      "the same on the other levels, backward; the finest level always uses F-relaxation");
  add("lp_bias_limit", &bias_limit,
      "adapts the iterations so that the relative distance to the exact gradient stays below this; 0: fixed "
      "iterations");
  add("lp_bias_every", &bias_every, "measure that distance every N steps");
  add("lp_bias_reference", &bias_reference,
      "against: serial, the exact gradient, or iteration, that of one iteration more, for the price of a "
      "cycle");
  add("lp_auto", &chooses,
      "the first steps compare levels, factors and iterations with serial propagation; the fastest with a "
      "gradient "
      "bias within --lp-bias-limit (0.1 if 0) is used from then on");
  add("lp_may_be_serial", &may_be_serial,
      "with --lp-bias-limit and --lp-bias-reference=serial, steps are serial for as long as that is faster");
}

absl::Status LayerParallelSettings::Check(std::int64_t steps, const std::string& flag) const {
  PLAIT_RETURN_IF_ERROR(AtLeast("lp-levels", levels, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("lp-iters", iterations, 1));
  if (forward_iterations != -1) PLAIT_RETURN_IF_ERROR(AtLeast("lp-fwd-iters", forward_iterations, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("lp-fmg-iterations", fmg_iterations, -1));
  PLAIT_RETURN_IF_ERROR(AtLeast("lp-fwd-finerelax", forward_finest_sweeps, 0));
  PLAIT_RETURN_IF_ERROR(AtLeast("lp-fwd-relax", forward_sweeps, 0));
  PLAIT_RETURN_IF_ERROR(AtLeast("lp-bwd-relax", backward_sweeps, 0));
  PLAIT_RETURN_IF_ERROR(Between("lp-bias-limit", bias_limit, 0, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("lp-bias-every", bias_every, 1));
  PLAIT_RETURN_IF_ERROR(OneOf("lp-bias-reference", bias_reference, {"serial", "iteration"}));
  if (may_be_serial && (bias_limit == 0 || bias_reference != "serial")) {
    return absl::InvalidArgumentError(
        "--lp-may-be-serial: expected --lp-bias-limit above 0 and --lp-bias-reference=serial, which times "
        "both");
  }
  if (may_be_serial && chooses) {
    return absl::InvalidArgumentError(
        "--lp-may-be-serial: not with --lp-auto, which chooses once for the run");
  }
  if (chooses && levels < 2) {
    return absl::InvalidArgumentError("--lp-auto: expected --lp-levels of at least 2, to begin with");
  }
  for (const int factor : cfactor) PLAIT_RETURN_IF_ERROR(AtLeast("lp-cfactor", factor, 2));
  return base::Prefixed(mgrit::LayerParallel::Check(Options(), steps),
                        absl::StrCat("--lp-levels, --lp-cfactor, --", flag));
}

mgrit::LayerParallelOptions LayerParallelSettings::Options() const {
  mgrit::LayerParallelOptions options;
  options.forward.max_levels = levels;
  options.forward.cfactors = cfactor;
  options.forward.skip_downcycle = levels > 1 && !use_downcycle;
  // Without a down-sweep, full multigrid is nested iteration: a cycle on each coarse level before the next
  // finer one.
  options.forward.fmg = fmg_iterations != 0;
  options.forward.fmg_iterations = fmg_iterations;
  options.backward = options.forward;
  options.forward.cf_sweeps = {forward_finest_sweeps, forward_sweeps};
  options.forward.max_iterations = forward_iterations == -1 ? iterations : forward_iterations;
  options.backward.cf_sweeps = {0, backward_sweeps};
  options.backward.max_iterations = iterations;
  return options;
}

void LayerParallelSettings::PropagateSerially() {
  levels = 1;
  chooses = may_be_serial = false;
  bias_limit = 0;
}

}  // namespace plait::training
