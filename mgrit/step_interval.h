// The arguments of a step: its interval, and the progress of the solve.
#ifndef PLAIT_MGRIT_STEP_INTERVAL_H_
#define PLAIT_MGRIT_STEP_INTERVAL_H_

#include <cmath>
#include <cstdint>

#include "mgrit/state.h"

namespace plait::mgrit {

// One step: from point `index` to point `index + 1` of `level`; level 0 is the finest. A step of a coarse
// level spans the fine points fine_start ... fine_stop.
struct StepInterval {
  static constexpr std::int64_t kNoIndex = -1;

  int level = 0;
  // In an adjoint solve, kNoIndex on a coarse level whose stride does not divide the number of steps: its
  // intervals, counted from the other end, are not those of the forward level.
  std::int64_t index = 0;
  std::int64_t fine_start = 0;
  std::int64_t fine_stop = 0;
  double t_start = 0;
  double t_stop = 0;
  // True if `u` is the final state of its point and `out` will be that of the next: a step of the final relaxation
  // (FinalRelaxation), or of the first C-interval of level 0, whose F-points follow from u_0 (not if periodic). A
  // problem that will be differentiated may keep here what its adjoint needs. C-points come from the coarse levels, so
  // no step to them is final. In a serial sweep every step is final.
  // With Storage::kAllPoints and FinalRelaxation::kAllPoints, every step to an F-point of level 0 is final once per
  // solve (those of the first C-interval again if the tolerance of inexact steps changes), but not with
  // ResidualTime::kCycle: the last residual, not known to be the last when it is formed, leaves to the final relaxation
  // only the F-points after the last C-point.
  bool final = false;

  // Iteration of the solve, from 0, and its progress from 0 (no residual yet) to 1 (near the tolerance; always 1 if
  // there is no tolerance).
  int iteration = 0;
  double progress = 1;
  // The current iterate at the end of the step, as an initial guess of `out` (on a coarse level, of `out` plus the
  // right-hand side). Null if there is none yet or it is not stored (Storage). May alias `out`: read it before
  // writing `out`. In an adjoint step, the iterate of lambda.
  const State* iterate = nullptr;

  double dt() const { return t_stop - t_start; }
  // The tolerance for an iterative solver inside the step: interpolated logarithmically from `loose` to `tight` by
  // `progress`. (As XBraid's braid_GetSpatialAccuracy, which however stays loose on coarse levels: FAS does not
  // converge if the errors of coarse steps change between visits.) See AnyProblem::IsInexact.
  double InnerTolerance(double loose, double tight) const {
    if (progress <= 0) return loose;
    return progress >= 1 ? tight : loose * std::pow(tight / loose, progress);
  }
};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_STEP_INTERVAL_H_
