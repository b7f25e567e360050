// From a level to the next coarser one: residual, states, and the coarse equations.
#include <algorithm>
#include <utility>

#include "mgrit/hierarchy.h"
#include "mgrit/level.h"

namespace plait::mgrit {

void Hierarchy::ResidualAt(Level& level, std::int64_t point, const State& before, State& out) {
  if (!problem_.HasEquation()) {
    StepToCPoint(level, point, before, out);
    problem_.Combine(-1.0, level.point(point), 1.0, out);
    return;
  }
  problem_.EvaluateEquation(IntervalOf(level, point - 1), before, level.point(point), out);
  problem_.Combine(0.0, out, -1.0, out);
  AddRightHandSide(level, point, out);
}

void Hierarchy::Residual() {
  Level& level = at(0);
  Sweep(level, 0, [&](std::int64_t point, const State& before) {
    ResidualAt(level, point, before, *level.residual);
    problem_.PutNorm(point / level.grid.cfactor - 1, *level.residual);
  });
}

// For the current states, the right-hand sides of the equations are R r + V - Phi_c(V) = Phi - Phi_c. No cycle solves
// them: the restricted states do not satisfy them.
void Hierarchy::CoarseErrors() {
  Restrict(0, /*norms=*/false);
  Level& coarse = at(1);
  coarse.unchanged_above = false;
  for (std::int64_t k = coarse.grid.first + 1; k <= coarse.grid.last && !coarse.grid.empty(); ++k) {
    problem_.PutNorm(k - 1, *coarse.g[coarse.grid.local(k)]);
  }
}

void Hierarchy::Restrict(int index, bool norms) {
  Level& fine = at(index);
  Level& coarse = at(index + 1);
  if (coarse.unchanged_above) coarse.g_before.resize(coarse.g.size());
  Sweep(fine, 0,
        [&](std::int64_t point, const State& before) { RestrictCPoint(fine, coarse, point, before, norms); });
  // What the next coarser level knows of this level's C-points stays valid only if they have not changed.
  if (index + 2 < levels() && !coarse.unchanged_above) at(index + 2).unchanged_above = false;
  FormCoarseEquations(coarse);
  if (options_.delta_rank > 0) FormDeltas(fine, coarse);
}

void Hierarchy::RestrictCPoint(Level& fine, Level& coarse, std::int64_t point, const State& before,
                               bool norms) {
  const std::int64_t coarse_point = point / fine.grid.cfactor;
  const std::int64_t own = coarse.grid.local(coarse_point);
  auto& g = coarse.g[own];
  if (coarse.unchanged_above) std::swap(g, coarse.g_before[own]);
  if (g == nullptr) g = problem_.NewState(coarse.grid.level);
  State& residual = problem_.CoarsensSpace() ? *fine.residual : *g;
  ResidualAt(fine, point, before, residual);
  if (norms) problem_.PutNorm(coarse_point - 1, residual);
  if (problem_.CoarsensSpace()) problem_.Restrict(fine.grid.level, residual, *g);
  RestrictState(fine, coarse, coarse_point);
  if (coarse_point == coarse.grid.last && coarse.grid.right_rank >= 0) Send(coarse);
}

void Hierarchy::RestrictState(Level& fine, Level& coarse, std::int64_t coarse_point) {
  const State& u = fine.point(coarse_point * fine.grid.cfactor);
  const std::int64_t own = coarse.grid.local(coarse_point);
  State* to = coarse.u[own].get();
  if (!problem_.CoarsensSpace()) {
    if (to != nullptr) problem_.Copy(u, *to);
    return;
  }
  if (coarse.v[own] == nullptr) coarse.v[own] = problem_.NewState(coarse.grid.level);
  problem_.Restrict(fine.grid.level, u, *coarse.v[own]);
  if (to != nullptr) problem_.Copy(*coarse.v[own], *to);
}

const State& Hierarchy::RestrictedAt(const Level& coarse, std::int64_t point) {
  const std::int64_t own = coarse.grid.local(point);
  if (coarse.u[own] != nullptr) return *coarse.u[own];
  if (problem_.CoarsensSpace()) return *coarse.v[own];
  Level& fine = at(coarse.grid.level - 1);
  return fine.point(point * fine.grid.cfactor);
}

// g_k = R r_k + V_k - Phi_c(V_{k-1}), from right to left, so that V_{k-1} is still available. For the first F-point of
// an interval, R r_k + V_k is also the result of F-relaxation, because its C-point has not changed.
void Hierarchy::FormCoarseEquations(Level& coarse) {
  const GridLevel& grid = coarse.grid;
  if (grid.empty()) return;
  if (grid.left_rank >= 0) Receive(coarse);
  std::fill(coarse.relaxed.begin(), coarse.relaxed.end(), 0);
  if (problem_.HasEquation()) return FormOwnEquations(coarse);
  const bool had_right_hand_side = !coarse.homogeneous;
  coarse.homogeneous = true;  // for steps without right-hand side
  for (std::int64_t k = grid.last; k > grid.first; --k) {
    State& g = *coarse.g[grid.local(k)];
    State& phi = *coarse.scratch[0];
    const State& v = RestrictedAt(coarse, k);
    if (coarse.unchanged_above && !grid.is_c_point(k)) {
      problem_.Copy(v, phi);
      if (had_right_hand_side) problem_.Combine(-1.0, *coarse.g_before[grid.local(k)], 1.0, phi);
    } else {
      Step(coarse, k - 1, RestrictedAt(coarse, k - 1), phi);
    }
    problem_.Combine(1.0, v, 1.0, g);
    if (coarse.in_windows) {
      problem_.Copy(g, coarse.point(k));
    } else if (grid.is_c_point(k - 1)) {
      const bool known = !grid.is_c_point(k) && coarse.stores_f_points;
      if (known) problem_.Copy(g, coarse.point(k));
      coarse.first_known[coarse.interval((k - 1) / grid.cfactor)] = known;
    }
    problem_.Combine(-1.0, phi, 1.0, g);
  }
  coarse.homogeneous = false;
  coarse.first_of_windows = coarse.in_windows;
}

// g_k = R r_k + A_c(V_k, V_{k-1}). Unlike FormCoarseEquations, this yields no steps that can be reused.
void Hierarchy::FormOwnEquations(Level& coarse) {
  const GridLevel& grid = coarse.grid;
  std::fill(coarse.first_known.begin(), coarse.first_known.end(), 0);
  for (std::int64_t k = grid.last; k > grid.first; --k) {
    State& value = *coarse.scratch[0];
    problem_.EvaluateEquation(IntervalOf(coarse, k - 1), RestrictedAt(coarse, k - 1), RestrictedAt(coarse, k),
                              value);
    problem_.Combine(1.0, value, 1.0, *coarse.g[grid.local(k)]);
  }
  coarse.homogeneous = false;
  coarse.first_of_windows = false;
}

void Hierarchy::RestrictGuess() {
  for (int index = 0; index + 1 < levels(); ++index) {
    Level& fine = at(index);
    Level& coarse = at(index + 1);
    const GridLevel& grid = coarse.grid;
    coarse.homogeneous = true;
    std::fill(coarse.relaxed.begin(), coarse.relaxed.end(), 0);
    std::fill(coarse.first_known.begin(), coarse.first_known.end(), 0);
    coarse.first_of_windows = false;
    if (grid.empty()) continue;
    // The ghost is not restricted here: its owner sends it before it is read, because C-points are corrected first.
    for (std::int64_t k = grid.first + 1; k <= grid.last; ++k) RestrictState(fine, coarse, k);
  }
}

}  // namespace plait::mgrit
