// The heat equation u_t = u_xx + sin(x) (cos(t) - sin(t)) on 0 <= x <= pi with u = 0 at both ends; from
// u(x, 0) = sin(x) the solution is sin(x) cos(t).
//
// Central differences on nx points x_j = j pi / (nx - 1), both ends included, and backward Euler:
//   (1 + 2c) u_j - c (u_{j-1} + u_{j+1}) = u_j(before) + dt f(t_stop, x_j),   c = dt / dx^2.
// A state is the nx values. The norm is their plain 2-norm, without dx.
//
// With spatial coarsening, every coarser time level has half the spatial intervals, as long as their number is even
// and at least three points remain. Restriction: full weighting (1/4, 1/2, 1/4); interpolation: linear.
#ifndef PLAIT_MGRIT_EXAMPLES_HEAT_PROBLEM_H_
#define PLAIT_MGRIT_EXAMPLES_HEAT_PROBLEM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mgrit/problem.h"

namespace plait::mgrit::examples {

class HeatProblem : public Problem<std::vector<double>> {
 public:
  using Vector = std::vector<double>;
  struct Parameters {
    int nx = 33;  // at least 3
    bool spatial_coarsening = true;
    // Guess at all times but the first: this value at every point of space, both ends included, or random numbers in
    // [0, 1) that depend only on the point in time.
    double initial_guess = 0;
    bool random_guess = false;
  };

  explicit HeatProblem(const Parameters& parameters) : parameters_(parameters) {}

  // Number of spatial points on a time level.
  int PointsOnLevel(int level) const;
  Vector Exact(double t) const;

  Vector Make(int level) override { return Vector(static_cast<std::size_t>(PointsOnLevel(level))); }
  void Initialize(std::int64_t point, double t, Vector& u) override;
  void Step(const StepInterval& interval, const Vector& u, Vector& out) override;
  void StepAdjoint(const StepInterval& interval, const Vector& u, const Vector& lambda, Vector& out) override;
  bool CoarsensSpace() const override { return parameters_.spatial_coarsening; }
  void Restrict(int fine_level, const Vector& fine, Vector& coarse) override;
  void Interpolate(int fine_level, const Vector& coarse, Vector& fine) override;
  void RestrictAdjoint(int fine_level, const Vector& fine, Vector& coarse) override;
  void InterpolateAdjoint(int fine_level, const Vector& coarse, Vector& fine) override;

 private:
  // Solves (1 + 2c) v_j - c (v_{j-1} + v_{j+1}) = u_j for the inner points by the Thomas algorithm, and sets the ends
  // to 0; v overwrites u.
  void SolveInPlace(double c, Vector& u);

  Parameters parameters_;
  Vector factors_;  // of the elimination
};

}  // namespace plait::mgrit::examples

#endif  // PLAIT_MGRIT_EXAMPLES_HEAT_PROBLEM_H_
