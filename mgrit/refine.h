// Adaptive refinement in time: solve, estimate the local error of every step by Richardson extrapolation, split the
// steps whose error is too large, and continue on the finer grid until no step is split.
//
//   mgrit::Refinement refinement;
//   refinement.order = 1;           // backward Euler
//   refinement.tolerance = 1e-6;    // local error of a step
//   auto refined = mgrit::SolveRefining(problem, {0, 2, 32}, options, refinement, communicator);
//   if (!refined.ok()) return refined.status();
//   refined->solver->state<double>(refined->solver->last_point());
//
// Every grid starts from the interpolated states of the previous grid; with Options::fmg, its first cycle is an
// F-cycle, as in full multigrid. Options::skip_downcycle, which would discard these states, applies to the first grid
// only. (Falgout, Manteuffel, O'Neill, Schroder: Multigrid reduction in time for nonlinear parabolic problems: a case
// study, SIAM J. Sci. Comput. 39, 2017; XBraid's refinement does the same.)
//
// Grids, states and norms are bitwise identical for any number of ranks.
#ifndef PLAIT_MGRIT_REFINE_H_
#define PLAIT_MGRIT_REFINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "comm/communicator.h"
#include "mgrit/solver.h"

namespace plait::mgrit {

struct Refinement {
  // Order of the method: the local error of a step of size h is about C h^{order + 1}.
  int order = 1;
  // Largest estimated local error of a step, in the norm of residuals.
  double tolerance = 1e-6;
  int max_factor = 8;                 // most parts that one refinement splits a step into; at least 2
  int max_refinements = 20;           // grids after the first
  std::int64_t max_steps = 10000000;  // of any grid
  // Number of parts to split a step of level 0 into, given its estimated error; clamped to 1 ... max_factor. Must
  // depend on its arguments only: every rank calls it for all steps. Default: the smallest number that brings the
  // estimated error below `tolerance`.
  std::function<int(const StepInterval& step, double error)> factor = nullptr;
};

// One grid.
struct RefinementStage {
  std::int64_t steps = 0;
  double largest_error = 0;  // largest estimated error of a step
  Solution solution;
};

struct RefinedSolution {
  std::unique_ptr<Solver> solver;       // of the last grid, solver->grid().time()
  std::vector<RefinementStage> stages;  // by grid, the first one included
  // True if no step of the last grid needs to be split; false if a limit of Refinement or a diverged solve ended it.
  bool accurate = false;
};

// Collective. Each grid has as many levels as fit, up to Options::max_levels. INVALID_ARGUMENT, before anything is
// solved and the same on all ranks, if `refinement` is out of range, `options` are not valid or periodic, or the first
// grid has no coarse level. `problem` must outlive the result. The program ends if it coarsens space or defines an
// equation of its own (HasEquation).
absl::StatusOr<RefinedSolution> SolveRefining(AnyProblem& problem, const TimeGrid& time,
                                              const Options& options, const Refinement& refinement,
                                              const comm::Communicator& communicator);

// Returns `grid` with step i split into factors[i] equal parts. The points of `grid` are kept bitwise. The program ends
// if a step is too short to be split in floating point. Local.
TimeGrid Refined(const TimeGrid& grid, absl::Span<const int> factors);

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_REFINE_H_
