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
// The work is distributed over the ranks of the communicator by intervals of points. States and residuals are
// bitwise identical for any number of ranks. Two levels give the states of the serial sweep after N_c iterations
// with F-relaxation, ceil(N_c / 2) with FCF-relaxation (N_c: number of C-intervals).
//
// Evaluations of Phi in K V-cycles, n_l steps, factor m_l and s_l CF-sweeps on level l, L the coarsest, all
// s_l > 0:
//   level 0:          K (s_0 + 1) ((n_1 - 1) m_0 + 1) + n_0 - n_1
//   level 0 < l < L:  K [ 2 (n_l - n_{l+1}) + (s_l + 1) ((n_{l+1} - 1) m_l + 1) ]
//   level L:          K (2 n_L - 1)
// mgrit/README.md has the other cycles, and what F-relaxation (s_l = 0) saves. No step is taken twice from
// the same state, but for those to C-points that are exact already: what one sweep, or the forming of the
// coarse equations, has computed is not computed by the next.
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

// What a solve has come to; the same on every rank but for `work`.
struct Solution {
  int iterations = 0;
  // Why the solve has stopped before its last iteration; one of them at most.
  // (One level is the serial sweep: it solves the equations, whatever it gives.)
  bool converged = false;    // the tolerance was reached
  bool diverged = false;     // a residual was not finite, or grew as Options::divergence_factor says
  bool stagnated = false;    // the residuals no longer fall: Options::stagnation_iterations
  bool interrupted = false;  // a monitor ended it
  // Per iteration, the norm over the C-points of the residual of level 0; see ResidualTime and TimeNorm. NaN
  // where there is none (a skipped down-sweep, ResidualTime::kNever).
  std::vector<double> residual_norms;
  WorkCount work;
  double seconds = 0;

  double last_residual_norm() const;
};

class Solver;

// What a monitor sees after an iteration.
struct Progress {
  int iteration = 0;         // from 0
  double residual_norm = 0;  // NaN where there is none
  // For the states that the iteration has come to: state() of the own C-points, Visit for all own points.
  Solver& solver;
};

class Solver {
 public:
  // Called after every iteration, on every rank: iteration (from 0), residual norm.
  using Observer = std::function<void(int iteration, double residual_norm)>;
  // Called after every iteration; returns whether to go on. The solve stops on all ranks if it does on one, at the
  // price of an all-reduce of one number an iteration.
  using Monitor = std::function<bool(const Progress& progress)>;
  // Your own norm over time, of the norms at the C-points 1, 2, ... of level 0. A function of its
  // argument alone: every rank takes it of the same numbers.
  using ResidualNorm = std::function<double(absl::Span<const double> norms)>;

  // `problem` outlives the solver. The options are valid (mgrit::Validate), else the program ends.
  // Collective.
  Solver(AnyProblem& problem, const TimeGrid& time, const Options& options,
         const comm::Communicator& communicator);
  // With your own partition; `partition` has as many positions as the communicator has ranks.
  Solver(AnyProblem& problem, const TimeGrid& time, const Options& options, comm::Communicator communicator,
         Partition partition);
  ~Solver();

  void set_observer(Observer observer) { observer_ = std::move(observer); }
  // On every rank or on none.
  void set_monitor(Monitor monitor) { monitor_ = std::move(monitor); }
  // Instead of Options::time_norm; on every rank.
  void set_residual_norm(ResidualNorm norm) { residual_norm_ = std::move(norm); }
  // Instead of Problem::Initialize at own C-points after the first; on every rank. Called by Solve; empty: none.
  void set_initial_guess(Hierarchy::InitialGuess guess) { hierarchy_.set_initial_guess(std::move(guess)); }
  // At least 1. Takes effect at the next Solve.
  void set_max_iterations(int iterations);

  // Collective. May be called again: memory is reused.
  Solution Solve();
  // Collective. One iteration more from where the last Solve or Continue has ended, at the price of a solve of one
  // iteration without a skipped down-cycle; the problem may have changed since. Point 0 is initialised. The Solution is of
  // this iteration alone. With one level, and before any Solve, it is Solve.
  Solution Continue();
  // Collective. The serial sweep, rank after rank, into the memory of this solver: what to fall back on where
  // the cycles do not converge. One iteration, no residual; `diverged` if the last state is not finite.
  Solution SolveSerially();

  // Collective, after a solve, on 2 levels or more without spatial coarsening. For every step of level 0, an estimate
  // of the error that it makes, which is C h^{order + 1} in a step of size h, by Richardson's method: C from the
  // difference between the coarse step of level 1 and the fine steps that it stands for. The same on all ranks. Costs a
  // restriction, which no Solution::work counts.
  std::vector<double> EstimateStepErrors(int order);

  // The own points first_point() ... last_point(); the first is its left neighbour's last.
  std::int64_t first_point() const { return hierarchy_.grid().level(0).first; }
  std::int64_t last_point() const { return hierarchy_.grid().level(0).last; }
  bool owns_points() const { return first_point() < last_point(); }
  // The state of an own point. The point is stored (Options::storage), else the program ends.
  const State& state(std::int64_t point) const;
  template <typename S>
  const S& state(std::int64_t point) const {
    return Value<S>(state(point));
  }
  // Collective. Shows all own points but the ghost, so that over the ranks each point 0 ... steps is shown once: the right
  // interval first, point 0 last; F-points that are not stored,
  // or that the solve has not relaxed last (Options::final_relaxation), are computed. A monitor may call it,
  // on every rank: then the F-points are computed, which counts as work.
  void Visit(const std::function<void(std::int64_t point, const State& u)>& visitor);
  const Grid& grid() const { return hierarchy_.grid(); }

 private:
  // Iterations `first` ... `last` - 1.
  // The latter two write into the result, so that its seconds end when it is complete.
  Solution Cycles(int first, int last, bool keeps_states);
  void Cycles(int first, int last, bool keeps_states, Solution& solution);
  void Sweep(bool checks_end, Solution& solution);
  void RunCycle(int level, Cycle cycle);
  void RunFirstCycleFromCoarsest();
  double Iterate(int iteration);
  // The norms of the solve so far that were taken.
  absl::Span<const double> NormsTaken(const Solution& solution) const;
  void Judge(Solution& solution) const;
  // Tells observer and monitor; returns whether the solve is to end.
  bool Report(const Solution& solution);
  double GlobalNorm();
  // Squares of the norms put, in slots 0 ... slots - 1, of all ranks.
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
  bool skips_downcycle_ = false;  // of the first iteration of this solve
  AnyProblem& problem_;
  std::vector<double> norms_squared_;  // of the last GlobalSquares
};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_SOLVER_H_
