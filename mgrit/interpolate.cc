// From a level to the next finer one: the coarse-grid correction.
#include "mgrit/hierarchy.h"
#include "mgrit/level.h"

namespace plait::mgrit {

void Hierarchy::Interpolate(int index) {
  Level& coarse = at(index);
  Level& fine = at(index - 1);
  // F-points that are not stored are at hand but now.
  Sweep(coarse, 0, nullptr,
        [&](std::int64_t point, const State& u) { CorrectCPoint(fine, coarse, point, u); });
  for (std::int64_t k = coarse.grid.first + 1; k <= coarse.grid.last && !coarse.grid.empty(); ++k) {
    const State* u = coarse.u[coarse.grid.local(k)].get();
    if (u != nullptr) CorrectCPoint(fine, coarse, k, *u);
  }
  const bool closes_ring = options_.periodic && index + 1 == levels();
  if (closes_ring) CloseCoarsestRing(coarse);
  CPointsChanged(fine);
  coarse.unchanged_above = !problem_.CoarsensSpace() && !closes_ring;
  const GridLevel& grid = fine.grid;
  if (!grid.empty() && grid.right_rank >= 0 && grid.is_c_point(grid.last)) Send(fine);
  ReceiveCPoint(fine);
}

// The sweep has begun with the point 0 of before and has sent the new one.
void Hierarchy::CloseCoarsestRing(Level& coarsest) {
  const GridLevel& grid = coarsest.grid;
  if (!grid.empty() && grid.first == 0) Receive(coarsest);
}

// Where space is not coarsened, u + (U - u) is U.
void Hierarchy::CorrectCPoint(Level& fine, Level& coarse, std::int64_t coarse_point, const State& corrected) {
  State& u = fine.point(coarse_point * fine.grid.cfactor);
  if (!problem_.CoarsensSpace()) return problem_.Copy(corrected, u);
  State& error = *coarse.v[coarse.grid.local(coarse_point)];
  problem_.Combine(1.0, corrected, -1.0, error);
  problem_.Interpolate(fine.grid.level, error, *fine.residual);
  problem_.Combine(1.0, *fine.residual, 1.0, u);
}

}  // namespace plait::mgrit
