// Adaptive refinement in time: solve, estimate what every step does wrong by Richardson's method, cut the steps that
// are too long, go on from there on the finer grid, until no step asks to be cut.
//
//   mgrit::Refinement refinement;
//   refinement.order = 1;           // backward Euler
//   refinement.tolerance = 1e-6;    // of a step
//   auto refined = mgrit::SolveRefining(problem, {0, 2, 32}, options, refinement, communicator);
//   if (!refined.ok()) return refined.status();
//   refined->solver->state<double>(refined->solver->last_point());
//
// With Options::fmg every grid begins with an F-cycle on the interpolated states of the grid before: full multigrid in
// which the coarse grids are not given beforehand. (Falgout, Manteuffel, O'Neill, Schroder: Multigrid reduction in time
// for nonlinear parabolic problems, SIAM J. Sci. Comput. 39, 2017; XBraid's refinement does the same.)
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
  // The error that a step of size h makes is about C h^{order + 1}.
  int order = 1;
  // Largest estimated error of a step, in the norm of residuals.
  double tolerance = 1e-6;
  int max_factor = 8;                 // parts that one refinement cuts a step into, at most
  int max_refinements = 20;           // grids after the first
  std::int64_t max_steps = 10000000;  // of any grid
  // Into how many parts to cut a step of level 0, given its estimated error; below 1 counts as 1. A function of its
  // arguments alone: every rank calls it for all steps. Default: the least that brings the error below `tolerance`.
  std::function<int(const StepInterval& step, double error)> factor = nullptr;
};

// One grid.
struct RefinementStage {
  std::int64_t steps = 0;
  double largest_error = 0;  // estimated, of a step
  Solution solution;
};

struct RefinedSolution {
  std::unique_ptr<Solver> solver;  // of the last grid; its grid().time() says which
  std::vector<RefinementStage> stages;
  // No step of the last grid asks to be cut. False if a limit of Refinement or a diverged solve came before.
  bool accurate = false;
};

// Collective. Options::max_levels are the most levels, of which a grid has as many as fit. INVALID_ARGUMENT, before
// anything is solved and the same on all ranks: numbers in `refinement` that cannot be, options that are not valid, a
// periodic problem, no coarse level on the first grid. `problem` outlives the result; it does not coarsen space, else the program
// ends.
absl::StatusOr<RefinedSolution> SolveRefining(AnyProblem& problem, const TimeGrid& time,
                                              const Options& options, const Refinement& refinement,
                                              const comm::Communicator& communicator);

// `grid` with step i cut into factors[i] equal parts. Its points are points of the result, bit for bit. Local.
TimeGrid Refined(const TimeGrid& grid, absl::Span<const int> factors);

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_REFINE_H_
