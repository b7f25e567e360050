#include "mgrit/examples/heat_problem.h"

#include <cmath>
#include <numbers>

#include "base/seed.h"

namespace plait::mgrit::examples {
namespace {

using Vector = HeatProblem::Vector;

double Spacing(const Vector& u) { return std::numbers::pi / static_cast<double>(u.size() - 1); }

double Diffusion(const StepInterval& interval, const Vector& u) {
  const double dx = Spacing(u);
  return interval.dt() / (dx * dx);
}

bool CanHalve(int points) { return points % 2 == 1 && points >= 5; }

}  // namespace

int HeatProblem::PointsOnLevel(int level) const {
  int points = parameters_.nx;
  for (int l = 0; l < level && parameters_.spatial_coarsening && CanHalve(points); ++l)
    points = (points - 1) / 2 + 1;
  return points;
}

Vector HeatProblem::Exact(double t) const {
  Vector u(static_cast<std::size_t>(parameters_.nx), 0.0);
  const double dx = Spacing(u);
  for (std::size_t j = 1; j + 1 < u.size(); ++j) u[j] = std::sin(static_cast<double>(j) * dx) * std::cos(t);
  return u;
}

void HeatProblem::Initialize(std::int64_t point, double /*t*/, Vector& u) {
  if (point == 0) {
    u = Exact(0.0);
  } else if (parameters_.random_guess) {
    base::RandomStream stream(base::DeriveSeed(1, "heat_guess", static_cast<std::uint64_t>(point)));
    for (double& value : u) value = stream.Uniform();
  } else {
    u.assign(u.size(), parameters_.initial_guess);
  }
}

void HeatProblem::SolveInPlace(double c, Vector& u) {
  const std::size_t last = u.size() - 1;
  const double diagonal = 1 + 2 * c;
  factors_.resize(u.size());
  factors_[0] = 0;
  u[0] = 0;
  u[last] = 0;
  for (std::size_t j = 1; j < last; ++j) {
    const double pivot = 1.0 / (diagonal + c * factors_[j - 1]);
    factors_[j] = -c * pivot;
    u[j] = pivot * (u[j] + c * u[j - 1]);
  }
  for (std::size_t j = last - 1; j >= 1; --j) u[j] -= factors_[j] * u[j + 1];
}

void HeatProblem::Step(const StepInterval& interval, const Vector& u, Vector& out) {
  const double dx = Spacing(u);
  const double forcing = interval.dt() * (std::cos(interval.t_stop) - std::sin(interval.t_stop));
  out = u;
  for (std::size_t j = 1; j + 1 < out.size(); ++j) out[j] += forcing * std::sin(static_cast<double>(j) * dx);
  SolveInPlace(Diffusion(interval, u), out);
}

// The matrix is symmetric. The step ignores the values at both ends and sets them to 0, and so does its transpose.
void HeatProblem::StepAdjoint(const StepInterval& interval, const Vector& u, const Vector& lambda,
                              Vector& out) {
  out = lambda;
  SolveInPlace(Diffusion(interval, u), out);
}

void HeatProblem::Restrict(int /*fine_level*/, const Vector& fine, Vector& coarse) {
  if (coarse.size() == fine.size()) {
    coarse = fine;
    return;
  }
  const std::size_t last = coarse.size() - 1;
  coarse[0] = fine[0];
  coarse[last] = fine[2 * last];
  for (std::size_t j = 1; j < last; ++j)
    coarse[j] = 0.25 * fine[2 * j - 1] + 0.5 * fine[2 * j] + 0.25 * fine[2 * j + 1];
}

void HeatProblem::Interpolate(int /*fine_level*/, const Vector& coarse, Vector& fine) {
  if (coarse.size() == fine.size()) {
    fine = coarse;
    return;
  }
  for (std::size_t j = 0; j < coarse.size(); ++j) fine[2 * j] = coarse[j];
  for (std::size_t j = 0; j + 1 < coarse.size(); ++j) fine[2 * j + 1] = 0.5 * (coarse[j] + coarse[j + 1]);
}

// The transpose of Interpolate.
void HeatProblem::RestrictAdjoint(int /*fine_level*/, const Vector& fine, Vector& coarse) {
  if (coarse.size() == fine.size()) {
    coarse = fine;
    return;
  }
  for (std::size_t j = 0; j < coarse.size(); ++j) {
    coarse[j] = fine[2 * j];
    if (j > 0) coarse[j] += 0.5 * fine[2 * j - 1];
    if (j + 1 < coarse.size()) coarse[j] += 0.5 * fine[2 * j + 1];
  }
}

// The transpose of Restrict.
void HeatProblem::InterpolateAdjoint(int /*fine_level*/, const Vector& coarse, Vector& fine) {
  if (coarse.size() == fine.size()) {
    fine = coarse;
    return;
  }
  const std::size_t last = coarse.size() - 1;
  fine.assign(fine.size(), 0.0);
  fine[0] = coarse[0];
  fine[2 * last] = coarse[last];
  for (std::size_t j = 1; j < last; ++j) {
    fine[2 * j - 1] += 0.25 * coarse[j];
    fine[2 * j] += 0.5 * coarse[j];
    fine[2 * j + 1] += 0.25 * coarse[j];
  }
}

}  // namespace plait::mgrit::examples
