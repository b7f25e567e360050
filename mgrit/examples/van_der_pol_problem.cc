#include "mgrit/examples/van_der_pol_problem.h"

#include <algorithm>
#include <cmath>

namespace plait::mgrit::examples {
namespace {

using Vector = VanDerPolProblem::Vector;

constexpr int kMostNewtonIterations = 30;

// Solves (I - dt f'(v)) x = b, or its transpose.
Vector SolveNewtonSystem(double mu, double dt, const Vector& v, const Vector& b, bool transposed) {
  const double a00 = 1;
  const double a11 = 1 - dt * mu * (1 - v[0] * v[0]);
  double a01 = -dt;
  double a10 = dt * (2 * mu * v[0] * v[1] + 1);
  if (transposed) std::swap(a01, a10);
  const double determinant = a00 * a11 - a01 * a10;
  return {(a11 * b[0] - a01 * b[1]) / determinant, (a00 * b[1] - a10 * b[0]) / determinant};
}

}  // namespace

void VanDerPolProblem::Step(const StepInterval& interval, const Vector& u, Vector& out) {
  const double dt = interval.dt();
  const double mu = parameters_.mu;
  const double tolerance = interval.InnerTolerance(parameters_.loose, parameters_.tight);
  const bool has_iterate = parameters_.starts_at_iterate && interval.iterate != nullptr;
  Vector v = has_iterate ? Value<Vector>(*interval.iterate) : u;
  for (int k = 0; k < kMostNewtonIterations; ++k) {
    const Vector residual = {u[0] + dt * v[1] - v[0],
                             u[1] + dt * (mu * (1 - v[0] * v[0]) * v[1] - v[0]) - v[1]};
    if (std::fmax(std::fabs(residual[0]), std::fabs(residual[1])) <= tolerance) break;
    const Vector change = SolveNewtonSystem(mu, dt, v, residual, /*transposed=*/false);
    v = {v[0] + change[0], v[1] + change[1]};
    ++newton_iterations_;
  }
  out = v;
}

void VanDerPolProblem::StepAdjoint(const StepInterval& interval, const Vector& u, const Vector& lambda,
                                   Vector& out) {
  StepInterval forward = interval;
  forward.iterate = nullptr;  // of lambda
  Vector v = u;
  Step(forward, u, v);
  out = SolveNewtonSystem(parameters_.mu, interval.dt(), v, lambda, /*transposed=*/true);
}

}  // namespace plait::mgrit::examples
