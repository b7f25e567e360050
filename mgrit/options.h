// How a solve is done. Every per-level list holds level 0 (the finest) first; its last entry serves all
// coarser levels.
#ifndef PLAIT_MGRIT_OPTIONS_H_
#define PLAIT_MGRIT_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace plait::mgrit {

// V: one visit of each coarse level. W: two. F: a V-cycle on each level on the way up.
enum class Cycle { kV, kW, kF };

// Which states are kept: all, or on the finest levels (Options::c_point_levels) C-points alone. Then memory falls
// by the coarsening factor; F-points are computed in every sweep, those of the first interval too, and again by
// Solver::Visit.
enum class Storage { kAllPoints, kCPoints };

// When the residual of an iteration is taken. kRestriction: inside the cycle, after its relaxation, where it
// costs nothing (XBraid's convention). kCycle: of the result of the cycle, one step more per C-point
// (PyMGRIT's). kNever: no norm is computed, and the tolerance is ignored.
enum class ResidualTime { kRestriction, kCycle, kNever };

// What the finest level gets after the last iteration: nothing (the C-points are valid), its last interval
// (the solution's end is valid), or all F-points. With Storage::kCPoints, all but kNone make the solution's
// end valid.
enum class FinalRelaxation { kNone, kLastInterval, kAllPoints };

// The norm over time of the norms of the residual at the C-points: their sum, 2-norm, or largest.
enum class TimeNorm { kOne, kTwo, kMax };

struct Options {
  int max_levels = 2;
  // Fewest steps that a coarse level may have; at least 1.
  std::int64_t min_coarse_steps = 1;
  std::vector<int> cfactors = {2};
  // Number of CF-sweeps after the F-sweep: 0 is F-, 1 is FCF-relaxation, and so on.
  std::vector<int> cf_sweeps = {1};
  // Weight of C-relaxation: u <- w Phi + (1 - w) u.
  std::vector<double> c_weights = {1.0};

  // Solves u_0 = Phi(u_{N-1}) instead of a given u_0: point N is point 0, and Problem::Initialize gives its guess as
  // that of point 0. The factors divide the steps of every level. The coarsest level, too, is a ring: it takes one
  // sweep from the C-point's state before, which converges if the coarse sweep over the period contracts (Gander,
  // Jiang, Song, Zhang: Analysis of two parareal algorithms for time-periodic problems, SIAM J. Sci. Comput. 35,
  // 2013: PP-IC).
  bool periodic = false;

  // Asynchronous truncated MGRIT: the coarsest level is not solved from its first point to its last; each point is
  // the end of a window of at most this many coarse steps that begins with the state restricted there, and all
  // windows are solved side by side. 0: no windows. At least as many as coarse steps: the whole solve. (Hahne,
  // Southworth, Friedhoff: Asynchronous truncated multigrid-reduction-in-time, SIAM J. Sci. Comput. 45, 2023.)
  std::int64_t coarse_window = 0;

  // Delta correction: in so many directions, coarse steps change with their state as the fine steps that they stand for
  // do. In all directions of a small state, two levels converge quadratically, and at once where steps are linear. The
  // directions of a C-point are what the tangents of the fine steps have made of those of the C-point before,
  // orthonormalised, so that they turn to those that grow most (backward Lyapunov vectors). 0: none. Costs as many
  // tangents (Problem::StepTangent) as steps in a restriction, times the rank. (Vargas, Falgout, Guenther, Schroder: Multigrid reduction in time for chaotic dynamical systems, SIAM J. Sci.
  // Comput. 45, 2023.)
  int delta_rank = 0;

  Cycle cycle = Cycle::kV;
  // Full multigrid: the first `fmg_iterations` iterations (-1: all) are F-cycles with `fmg_v_cycles` V-cycles
  // a level.
  bool fmg = false;
  int fmg_iterations = -1;
  int fmg_v_cycles = 1;
  // The first iteration starts on the coarsest level with the initial guess, without a down-sweep: with fmg,
  // nested iteration. It has no residual.
  bool skip_downcycle = false;

  int max_iterations = 30;
  // Stop when the residual is below `tolerance` (times the first residual, if relative; a first residual of
  // zero stops too). 0: never.
  double tolerance = 0;
  bool relative_tolerance = false;
  // Give up as diverged when a residual is above this many times the first. 0: only when it is not finite.
  double divergence_factor = 0;
  // Give up as stagnated when the smallest of the last `stagnation_iterations` residuals (0: never) is not
  // below `stagnation_factor` times the smallest before them.
  int stagnation_iterations = 0;
  double stagnation_factor = 0.9;

  Storage storage = Storage::kAllPoints;
  // With kCPoints: how many levels, the finest first, keep C-points alone; at least 1. More than 1 changes
  // results by rounding.
  int c_point_levels = 1;
  ResidualTime residual_time = ResidualTime::kRestriction;
  TimeNorm time_norm = TimeNorm::kTwo;
  FinalRelaxation final_relaxation = FinalRelaxation::kAllPoints;
  // Start from the states of the solve before, if there was one, instead of Problem::Initialize. Point 0 is
  // always initialised. A solve that starts so does not skip its first down-cycle, which would forget them.
  bool keep_previous_states = false;
};

// The entry of a per-level list that serves `level`.
template <typename T>
const T& AtLevel(const std::vector<T>& list, int level) {
  return list[static_cast<std::size_t>(level) < list.size() ? static_cast<std::size_t>(level)
                                                            : list.size() - 1];
}

// OK if the levels and factors fit `steps`; else says what does not, and the largest that does. Local.
absl::Status Validate(const Options& options, std::int64_t steps);

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_OPTIONS_H_
