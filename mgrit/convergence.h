// What the residual norms of a solve say about it.
#ifndef PLAIT_MGRIT_CONVERGENCE_H_
#define PLAIT_MGRIT_CONVERGENCE_H_

#include "absl/types/span.h"
#include "mgrit/options.h"

namespace plait::mgrit {

enum class Verdict { kGoOn, kConverged, kStagnated, kDiverged };

// `norms`: the norms taken so far, in order; at least one. Depends on its arguments only, so ranks with the same
// norms reach the same verdict. Local.
Verdict Judge(const Options& options, absl::Span<const double> norms);

// StepInterval::progress of a solve with these norms; `norms` may be empty. Local.
double ProgressOf(const Options& options, absl::Span<const double> norms);

// The norm over time, from squared norms by point. Not finite if one of the squares is not. Local.
double NormOverTime(TimeNorm norm, absl::Span<const double> squares);

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_CONVERGENCE_H_
