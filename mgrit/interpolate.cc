// From a level to the next finer one: the coarse-grid correction.
#include "mgrit/hierarchy.h"
#include "mgrit/level.h"

namespace plait::mgrit {

void Hierarchy::Interpolate(int index) {
  FRelax(index);
  Level& coarse = at(index);
  Level& fine = at(index - 1);
  CorrectCPoints(fine, coarse);
  CPointsChanged(fine);
  coarse.unchanged_above = !problem_.CoarsensSpace();
  const GridLevel& grid = fine.grid;
  if (!grid.empty() && grid.right_rank >= 0 && grid.is_c_point(grid.last)) Send(fine);
  ReceiveCPoint(fine);
}

// Where space is not coarsened, u + (U - u) is U.
void Hierarchy::CorrectCPoints(Level& fine, Level& coarse) {
  const GridLevel& grid = coarse.grid;
  for (std::int64_t k = grid.first + 1; k <= grid.last && !grid.empty(); ++k) {
    State& u = fine.point(k * fine.grid.cfactor);
    const std::int64_t own = grid.local(k);
    if (!problem_.CoarsensSpace()) {
      problem_.Copy(*coarse.u[own], u);
      continue;
    }
    State& error = *coarse.v[own];
    problem_.Combine(1.0, *coarse.u[own], -1.0, error);
    problem_.Interpolate(fine.grid.level, error, *fine.residual);
    problem_.Combine(1.0, *fine.residual, 1.0, u);
  }
}

}  // namespace plait::mgrit
