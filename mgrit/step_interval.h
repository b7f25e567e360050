// What a step is told: where it goes, and how far the solve has come.
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
  // `u` is the final state of its point and `out` will be that of the next: part of the sweep that shows the
  // solution (FinalRelaxation). A problem that will be differentiated may keep what its adjoint needs. With
  // all states stored, every step to an F-point of level 0 is final once in a solve; C-points follow from the
  // coarse levels, and no step to them is final. In a serial sweep every step is.
  bool final = false;

  // Of the solve under way: its iteration, from 0, and how far it has come, from 0 (no residual yet) to 1 (near
  // the tolerance; always, if there is none).
  int iteration = 0;
  double progress = 1;
  // The current iterate at the end of the step, a guess of `out` (on a coarse level, of `out` and the
  // right-hand side). Null where there is none yet or it is not stored (Storage). It may be `out` itself: to be
  // read before that is written. In an adjoint step, of `lambda`.
  const State* iterate = nullptr;

  double dt() const { return t_stop - t_start; }
  // The tolerance for a solver inside the step: `loose` at first, `tight` in the end, between them in the
  // logarithm as the residual falls (XBraid's braid_GetSpatialAccuracy, which stays loose on coarse levels: full
  // approximation does not converge on errors of coarse steps that change from visit to visit). See
  // AnyProblem::IsInexact.
  double InnerTolerance(double loose, double tight) const {
    if (progress <= 0) return loose;
    return progress >= 1 ? tight : loose * std::pow(tight / loose, progress);
  }
};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_STEP_INTERVAL_H_
