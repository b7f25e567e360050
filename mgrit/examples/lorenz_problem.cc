#include "mgrit/examples/lorenz_problem.h"

namespace plait::mgrit::examples {
namespace {

using Vector = LorenzProblem::Vector;

constexpr double kSigma = 10.0;
constexpr double kRho = 28.0;
constexpr double kBeta = 8.0 / 3.0;

Vector Slope(const Vector& u) {
  return {kSigma * (u[1] - u[0]), u[0] * (kRho - u[2]) - u[1], u[0] * u[1] - kBeta * u[2]};
}

// (d Slope / d u) w
Vector SlopeTangent(const Vector& u, const Vector& w) {
  return {kSigma * (w[1] - w[0]), (kRho - u[2]) * w[0] - w[1] - u[0] * w[2],
          u[1] * w[0] + u[0] * w[1] - kBeta * w[2]};
}

// (d Slope / d u)^T lambda
Vector SlopeAdjoint(const Vector& u, const Vector& lambda) {
  return {-kSigma * lambda[0] + (kRho - u[2]) * lambda[1] + u[1] * lambda[2],
          kSigma * lambda[0] - lambda[1] + u[0] * lambda[2], -u[0] * lambda[1] - kBeta * lambda[2]};
}

// u + h f
Vector Moved(const Vector& u, double h, const Vector& f) {
  return {u[0] + h * f[0], u[1] + h * f[1], u[2] + h * f[2]};
}

}  // namespace

void LorenzProblem::Initialize(std::int64_t point, double /*t*/, Vector& u) {
  if (point == 0) {
    u = parameters_.u0;
  } else {
    u.fill(parameters_.initial_guess);
  }
}

void LorenzProblem::Step(const StepInterval& interval, const Vector& u, Vector& out) {
  const double dt = interval.dt();
  const Vector k1 = Slope(u);
  if (parameters_.method == Method::kForwardEuler) {
    out = Moved(u, dt, k1);
    return;
  }
  const Vector k2 = Slope(Moved(u, 0.5 * dt, k1));
  const Vector k3 = Slope(Moved(u, 0.5 * dt, k2));
  const Vector k4 = Slope(Moved(u, dt, k3));
  for (int i = 0; i < 3; ++i) out[i] = u[i] + dt / 6.0 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
}

void LorenzProblem::InitializeDirection(int index, Vector& w) {
  w = {0, 0, 0};
  w[static_cast<std::size_t>(index)] = 1;
}

void LorenzProblem::StepTangent(const StepInterval& interval, const Vector& u, const Vector& w, Vector& out) {
  const double dt = interval.dt();
  const Vector d1 = SlopeTangent(u, w);
  if (parameters_.method == Method::kForwardEuler) {
    out = Moved(w, dt, d1);
    return;
  }
  const Vector u2 = Moved(u, 0.5 * dt, Slope(u)), d2 = SlopeTangent(u2, Moved(w, 0.5 * dt, d1));
  const Vector u3 = Moved(u, 0.5 * dt, Slope(u2)), d3 = SlopeTangent(u3, Moved(w, 0.5 * dt, d2));
  const Vector u4 = Moved(u, dt, Slope(u3)), d4 = SlopeTangent(u4, Moved(w, dt, d3));
  for (int i = 0; i < 3; ++i) out[i] = w[i] + dt / 6.0 * (d1[i] + 2 * d2[i] + 2 * d3[i] + d4[i]);
}

// The stages in reverse: a_j is the adjoint of k_j's argument, which is u + c_j dt k_{j-1}.
void LorenzProblem::StepAdjoint(const StepInterval& interval, const Vector& u, const Vector& lambda,
                                Vector& out) {
  const double dt = interval.dt();
  const Vector none = {0, 0, 0};
  if (parameters_.method == Method::kForwardEuler) {
    out = Moved(lambda, dt, SlopeAdjoint(u, lambda));
    return;
  }
  const Vector u2 = Moved(u, 0.5 * dt, Slope(u));
  const Vector u3 = Moved(u, 0.5 * dt, Slope(u2));
  const Vector u4 = Moved(u, dt, Slope(u3));
  const Vector a4 = SlopeAdjoint(u4, Moved(none, dt / 6.0, lambda));
  const Vector a3 = SlopeAdjoint(u3, Moved(Moved(none, dt / 3.0, lambda), dt, a4));
  const Vector a2 = SlopeAdjoint(u2, Moved(Moved(none, dt / 3.0, lambda), 0.5 * dt, a3));
  const Vector a1 = SlopeAdjoint(u, Moved(Moved(none, dt / 6.0, lambda), 0.5 * dt, a2));
  for (int i = 0; i < 3; ++i) out[i] = lambda[i] + a1[i] + a2[i] + a3[i] + a4[i];
}

}  // namespace plait::mgrit::examples
