// What the residual norms of a solve say about it.
#ifndef PLAIT_MGRIT_CONVERGENCE_H_
#define PLAIT_MGRIT_CONVERGENCE_H_

#include "absl/types/span.h"
#include "mgrit/options.h"

namespace plait::mgrit {

enum class Verdict { kGoOn, kConverged, kStagnated, kDiverged };

// `norms`: those that were taken, in order, at least one. A function of its arguments alone, so that all ranks
// that hold the same norms decide the same. Local.
Verdict Judge(const Options& options, absl::Span<const double> norms);

// How far a solve with these norms, which may be none, has come: StepInterval::progress. Local.
double ProgressOf(const Options& options, absl::Span<const double> norms);

// The norm over time, of the squares of norms. Not finite if a square is not. Local.
double NormOverTime(TimeNorm norm, absl::Span<const double> squares);

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_CONVERGENCE_H_
