// Multigrid-reduction-in-time: solves u_0 given, u_{i+1} = Phi_i(u_i), for all i at once, by multigrid over
// the points.
//
//   mgrit::Options options;
//   options.max_levels = 3;
//   options.cfactors = {4};
//   options.tolerance = 1e-9;
//   Decay problem;                                                  // mgrit/problem.h
//   mgrit::Solver solver(problem, {.start = 0, .stop = 5, .steps = 64}, options, comm::Communicator::Self());
//   mgrit::Solution solution = solver.Solve();
//   const double& u_end = solver.state<double>(64);
//
// Each rank of the communicator owns an interval of steps. States and residual norms are bitwise identical for any
// number of ranks. Two levels reproduce the serial sweep after N_c iterations with F-relaxation, ceil(N_c / 2) with
// FCF-relaxation (N_c: number of C-intervals).
//
// Evaluations of Phi in K V-cycles, n_l steps, factor m_l and s_l CF-sweeps on level l, L the coarsest, all
// s_l > 0:
//   level 0:          K (s_0 + 1) ((n_1 - 1) m_0 + 1) + n_0 - n_1
//   level 0 < l < L:  K [ 2 (n_l - n_{l+1}) + (s_l + 1) ((n_{l+1} - 1) m_l + 1) ]
//   level L:          K (2 n_L - 1)
// mgrit/README.md has the other cycles, and what F-relaxation (s_l = 0) saves. Results of a sweep, or of forming the
// coarse equations, are reused: no step is taken twice from the same state, except steps to C-points that are
// already exact.
#ifndef PLAIT_MGRIT_SOLVER_H_
#define PLAIT_MGRIT_SOLVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "comm/communicator.h"
#include "mgrit/grid.h"
#include "mgrit/hierarchy.h"
#include "mgrit/options.h"
#include "mgrit/problem.h"

namespace plait::mgrit {

// The outcome of a solve; the same on every rank, except `work` and `seconds`.
struct Solution {
  int iterations = 0;
  // Why the solve stopped; at most one is true. None: it reached max_iterations. The serial sweep (one level) always
  // counts as converged.
  bool converged = false;    // the tolerance was reached
  bool diverged = false;     // a residual norm was not finite or exceeded Options::divergence_factor
  bool stagnated = false;    // the residual norms no longer fall: Options::stagnation_iterations
  bool interrupted = false;  // a monitor ended it
  // By iteration: the norm over the C-points of the residual of level 0; see ResidualTime and TimeNorm. NaN if there
  // is none: ResidualTime::kNever, or a skipped down-cycle with ResidualTime::kRestriction. 0 for a serial sweep.
  std::vector<double> residual_norms;
  WorkCount work;
  double seconds = 0;

  double last_residual_norm() const;
};

class Solver;

// The argument of a monitor.
struct Progress {
  int iteration = 0;         // from 0
  double residual_norm = 0;  // NaN if there is none
  // For access to the current states: state() of own C-points, Visit for all own points.
  Solver& solver;
};

class Solver {
 public:
  // Called after every iteration, on every rank: iteration (from 0), and the outcome so far.
  using Observer = std::function<void(int iteration, const Solution& so_far)>;
  // Called after every iteration; returns whether to continue. If it returns false on one rank, the solve stops on all
  // ranks. Costs an all-reduce of one number per iteration.
  using Monitor = std::function<bool(const Progress& progress)>;
  // A user-defined norm over time of the norms at the C-points 1, 2, ... of level 0. Must depend on its argument only:
  // every rank evaluates it for the same numbers.
  using ResidualNorm = std::function<double(absl::Span<const double> norms)>;

  // Collective. `problem` must outlive the solver. The program ends if mgrit::Validate rejects the options.
  Solver(AnyProblem& problem, const TimeGrid& time, const Options& options,
         const comm::Communicator& communicator);
  // With your own partition, which must have as many positions as the communicator has ranks.
  Solver(AnyProblem& problem, const TimeGrid& time, const Options& options, comm::Communicator communicator,
         Partition partition);
  ~Solver();

  void set_observer(Observer observer) { observer_ = std::move(observer); }
  // Local; set on every rank or on none.
  void set_monitor(Monitor monitor) { monitor_ = std::move(monitor); }
  // Replaces Options::time_norm. Local; set on every rank.
  void set_residual_norm(ResidualNorm norm) { residual_norm_ = std::move(norm); }
  // Replaces Problem::Initialize at all own C-points but point 0, in Solve; empty: not used. Local; set on every rank.
  void set_initial_guess(Hierarchy::InitialGuess guess) { hierarchy_.set_initial_guess(std::move(guess)); }
  // At least 1. Takes effect at the next Solve.
  void set_max_iterations(int iterations);

  // Collective. May be called repeatedly; memory is reused.
  Solution Solve();
  // Collective. One more iteration from the states of the last Solve or Continue, without a skipped down-cycle. The
  // problem may have changed in between; point 0 is initialised again. The returned Solution covers this iteration
  // only; StepInterval::progress goes on from the iterations before. With one level, or before the first Solve, the
  // same as Solve.
  Solution Continue();
  // Collective. The serial sweep, rank after rank, into the memory of this solver: a fallback for cycles that do not
  // converge. Returns one iteration with residual norm 0, or with NaN and `diverged` if the last state is not finite.
  // The program ends if the problem is periodic.
  Solution SolveSerially();

  // Collective; after a solve. Estimates the local error C h^{order + 1} of every step of level 0 by Richardson
  // extrapolation: C follows from the difference between a coarse step of level 1 and the fine steps that it replaces.
  // The same on all ranks. Costs a restriction, which is not counted in Solution::work. The program ends with fewer
  // than 2 levels, spatial coarsening, or HasEquation.
  std::vector<double> EstimateStepErrors(int order);

  // Local. The own points first_point() ... last_point(); the first is a copy of the left neighbour's last.
  std::int64_t first_point() const { return hierarchy_.grid().level(0).first; }
  std::int64_t last_point() const { return hierarchy_.grid().level(0).last; }
  bool owns_points() const { return first_point() < last_point(); }
  // Local. The state of an own point. The program ends if it is not stored (Options::storage).
  const State& state(std::int64_t point) const;
  template <typename S>
  const S& state(std::int64_t point) const {
    return Value<S>(state(point));
  }
  // Collective. Calls `visitor` for all own points except the ghost, so that each point 0 ... steps is visited on one
  // rank; the rightmost interval first, point 0 last. F-points that are not stored or were not relaxed last
  // (Options::final_relaxation) are recomputed. A monitor may call it, on every rank; the recomputed F-points then
  // count as work.
  void Visit(const std::function<void(std::int64_t point, const State& u)>& visitor);
  const Grid& grid() const { return hierarchy_.grid(); }

 private:
  // Iterations `first` ... `last` - 1. The functions with a `solution` argument write into it, so that its seconds are
  // complete when they return.
  Solution Cycles(int first, int last, bool keeps_states);
  void Cycles(int first, int last, bool keeps_states, Solution& solution);
  void Sweep(bool checks_end, Solution& solution);
  bool EndIsFinite();
  void RunCycle(int level, Cycle cycle);
  void RunFirstCycleFromCoarsest();
  double Iterate(int iteration);
  // The residual norms of the solve so far, without missing ones.
  absl::Span<const double> NormsTaken(const Solution& solution) const;
  void Judge(Solution& solution) const;
  // Calls observer and monitor; returns whether the monitor of any rank asks to stop.
  bool Report(const Solution& solution);
  double GlobalNorm();
  // Squares of the norms recorded on all ranks, in slots 0 ... slots - 1.
  absl::Span<const double> GlobalSquares(std::int64_t slots);
  Cycle CycleOf(int iteration) const;
  void FinalRelaxation();

  Options options_;
  comm::Communicator communicator_;
  Hierarchy hierarchy_;
  Observer observer_;
  Monitor monitor_;
  ResidualNorm residual_norm_;
  bool solving_ = false;
  int iterations_ = 0;            // of the last Solve and what has continued it
  double progress_ = 0;           // StepInterval::progress
  std::vector<double> norms_;     // of these iterations: those that are finite
  bool skips_downcycle_ = false;  // of the first iteration of this solve
  AnyProblem& problem_;
  std::vector<double> norms_squared_;  // of the last GlobalSquares
};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_SOLVER_H_
