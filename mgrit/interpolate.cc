// From a level to the next finer one: the coarse-grid correction.
#include <algorithm>
#include <utility>

#include "mgrit/hierarchy.h"
#include "mgrit/level.h"

namespace plait::mgrit {

void Hierarchy::Interpolate(int index) {
  Level& coarse = at(index);
  Level& fine = at(index - 1);
  // F-points that are not stored are available only during the sweep.
  if (coarse.in_windows) {
    SolveWindows(coarse);
  } else {
    Sweep(coarse, 0, nullptr,
          [&](std::int64_t point, const State& u) { CorrectCPoint(fine, coarse, point, u); });
  }
  for (std::int64_t k = coarse.grid.first + 1; k <= coarse.grid.last && !coarse.grid.empty(); ++k) {
    const State* u = coarse.u[coarse.grid.local(k)].get();
    if (u != nullptr) CorrectCPoint(fine, coarse, k, *u);
  }
  const bool closes_ring = options_.periodic && index + 1 == levels() && !coarse.in_windows;
  if (closes_ring) CloseCoarsestRing(coarse);
  CPointsChanged(fine);
  coarse.unchanged_above =
      !problem_.CoarsensSpace() && !closes_ring && !coarse.in_windows && options_.delta_rank == 0;
  const GridLevel& grid = fine.grid;
  if (!grid.empty() && grid.right_rank >= 0 && grid.is_c_point(grid.last)) Send(fine);
  ReceiveCPoint(fine);
}

// Solves all windows by as many Jacobi sweeps as a window has steps. Before sweep s, point k holds step s - 1 of the
// window that starts s - 1 points before it, which is the previous step of the window that sweep s advances to point
// k + 1. A window that starts at point 0 is then complete, unless the level is a ring.
void Hierarchy::SolveWindows(Level& coarsest) {
  const GridLevel& grid = coarsest.grid;
  if (grid.empty()) return;
  const std::int64_t sweeps =
      options_.periodic ? options_.coarse_window : std::min(options_.coarse_window, grid.steps);
  for (std::int64_t sweep = coarsest.first_of_windows ? 2 : 1; sweep <= sweeps; ++sweep) {
    if (grid.right_rank >= 0) Send(coarsest);
    if (grid.left_rank >= 0) Receive(coarsest);
    const std::int64_t first = std::max(grid.first + 1, options_.periodic ? 1 : sweep);
    for (std::int64_t k = grid.last; k >= first; --k) {
      Step(coarsest, k - 1, coarsest.point(k - 1), *coarsest.scratch[0]);
      std::swap(coarsest.u[grid.local(k)], coarsest.scratch[0]);
    }
  }
  coarsest.first_of_windows = false;
}

// The sweep started from the previous state of point 0 and has sent the new one.
void Hierarchy::CloseCoarsestRing(Level& coarsest) {
  const GridLevel& grid = coarsest.grid;
  if (!grid.empty() && grid.first == 0) Receive(coarsest);
}

// Without spatial coarsening, u + (U - u) is U.
void Hierarchy::CorrectCPoint(Level& fine, Level& coarse, std::int64_t coarse_point, const State& corrected) {
  State& u = fine.point(coarse_point * fine.grid.cfactor);
  if (!problem_.CoarsensSpace()) return problem_.Copy(corrected, u);
  State& error = *coarse.v[coarse.grid.local(coarse_point)];
  problem_.Combine(1.0, corrected, -1.0, error);
  problem_.Interpolate(fine.grid.level, error, *fine.residual);
  problem_.Combine(1.0, *fine.residual, 1.0, u);
}

}  // namespace plait::mgrit
