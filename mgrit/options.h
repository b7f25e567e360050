// Options of a solve. Per-level lists start with level 0 (the finest); the last entry applies to all coarser levels.
#ifndef PLAIT_MGRIT_OPTIONS_H_
#define PLAIT_MGRIT_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace plait::mgrit {

// V: visits each coarse level once. W: twice. F: an additional V-cycle on each level on the way up.
enum class Cycle { kV, kW, kF };

// Which states are stored: all, or only C-points on the finest Options::c_point_levels levels. The latter divides
// memory by the coarsening factor, but recomputes F-points in every sweep, including those of the first interval,
// and in Solver::Visit.
enum class Storage { kAllPoints, kCPoints };

// When the residual of an iteration is computed. kRestriction: within the cycle, after relaxation, at no extra cost
// (as XBraid). kCycle: after the cycle, for one additional step per C-point (as PyMGRIT). kNever: no norm is
// computed; the tolerances and limits on the residual are ignored.
enum class ResidualTime { kRestriction, kCycle, kNever };

// Relaxation of the finest level after the last iteration: none (only C-points are valid), the last interval (the
// final state is valid as well), or all F-points. With Storage::kCPoints, all values but kNone make the final state
// valid.
enum class FinalRelaxation { kNone, kLastInterval, kAllPoints };

// The norm over time of the residual norms at the C-points: 1-norm (sum), 2-norm, or maximum.
enum class TimeNorm { kOne, kTwo, kMax };

struct Options {
  // Number of levels; Validate fails if the time grid has too few steps for it. 1: the serial sweep.
  int max_levels = 2;
  // Fewest steps that a coarse level may have; at least 1.
  std::int64_t min_coarse_steps = 1;
  std::vector<int> cfactors = {2};
  // Number of CF-sweeps after the F-sweep: 0 is F-relaxation, 1 FCF-relaxation, and so on (XBraid's nrelax).
  std::vector<int> cf_sweeps = {1};
  // Weight of C-relaxation: u <- w Phi + (1 - w) u.
  std::vector<double> c_weights = {1.0};

  // Solves the periodic problem u_0 = Phi(u_{N-1}): point N is point 0, for which Problem::Initialize gives a guess.
  // The factors must divide the steps of every level; at least 2 levels. The coarsest level is also a ring: each
  // visit makes one sweep from the previous state at point 0, which converges if the coarse sweep over a period is a
  // contraction (PP-IC of Gander, Jiang, Song, Zhang: Analysis of two parareal algorithms for time-periodic
  // problems, SIAM J. Sci. Comput. 35, 2013).
  bool periodic = false;

  // Asynchronous truncated MGRIT: instead of a sequential solve of the coarsest level, every point ends a window of
  // at most this many coarse steps, which starts from the restricted state; all windows are solved in parallel.
  // 0: sequential solve. With at least as many steps as the level has, equal to it. (Hahne, Southworth, Friedhoff:
  // Asynchronous truncated multigrid-reduction-in-time, SIAM J. Sci. Comput. 45, 2023.)
  std::int64_t coarse_window = 0;

  // Rank of the delta correction: in this many directions, the Jacobian of a coarse step is corrected to that of the
  // fine steps it replaces. With all directions of a small state, two levels converge quadratically, and in one
  // iteration if steps are linear. The directions at a C-point are those of the previous C-point, propagated by the
  // tangents of the fine steps and orthonormalised; over the iterations they approach the fastest-growing ones
  // (backward Lyapunov vectors). 0: off. A restriction costs `delta_rank` tangents (Problem::StepTangent) per step.
  // Needs Storage::kAllPoints; not with `periodic`, spatial coarsening or HasEquation. (Vargas, Falgout, Guenther,
  // Schroder: Multigrid reduction in time for chaotic dynamical systems, SIAM J. Sci. Comput. 45, 2023.)
  int delta_rank = 0;

  Cycle cycle = Cycle::kV;
  // Full multigrid: the first `fmg_iterations` iterations (-1: all) are F-cycles with `fmg_v_cycles` V-cycles
  // a level.
  bool fmg = false;
  int fmg_iterations = -1;
  int fmg_v_cycles = 1;
  // The first iteration starts on the coarsest level with the restricted initial guess, without a down-cycle; with
  // fmg, nested iteration. It has no residual with ResidualTime::kRestriction.
  bool skip_downcycle = false;

  int max_iterations = 30;
  // Stops when the residual norm is strictly below `tolerance`; if relative, below `tolerance` times the first norm,
  // or when the first norm is zero. 0: no tolerance.
  double tolerance = 0;
  bool relative_tolerance = false;
  // Stops as diverged when a residual norm exceeds this multiple of the first. 0: only when it is not finite.
  double divergence_factor = 0;
  // Stops as stagnated when the smallest of the last `stagnation_iterations` residual norms is not below
  // `stagnation_factor` times the smallest before them. 0 iterations: never.
  int stagnation_iterations = 0;
  double stagnation_factor = 0.9;

  Storage storage = Storage::kAllPoints;
  // With kCPoints: the number of finest levels that store only C-points; at least 1. More than 1 changes results by
  // rounding.
  int c_point_levels = 1;
  ResidualTime residual_time = ResidualTime::kRestriction;
  TimeNorm time_norm = TimeNorm::kTwo;
  FinalRelaxation final_relaxation = FinalRelaxation::kAllPoints;
  // Starts from the states of the previous solve, if there was one, instead of Problem::Initialize. Point 0 is still
  // initialised (unless periodic). Such a solve ignores skip_downcycle, which would discard the states.
  bool keep_previous_states = false;
};

// The entry of a per-level list that applies to `level`.
template <typename T>
const T& AtLevel(const std::vector<T>& list, int level) {
  return list[static_cast<std::size_t>(level) < list.size() ? static_cast<std::size_t>(level)
                                                            : list.size() - 1];
}

// INVALID_ARGUMENT if an option is out of range, options exclude each other, or `steps` steps are too few for
// max_levels; the message then names the largest number of levels that fits. Local.
absl::Status Validate(const Options& options, std::int64_t steps);

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_OPTIONS_H_
