// Lorenz's system x' = sigma (y - x), y' = x (rho - z) - y, z' = x y - beta z, with sigma = 10, rho = 28,
// beta = 8/3, by the classical Runge-Kutta method of order four or by forward Euler. (Lorenz, J. Atmos. Sci.
// 20, 1963.)
#ifndef PLAIT_MGRIT_EXAMPLES_LORENZ_PROBLEM_H_
#define PLAIT_MGRIT_EXAMPLES_LORENZ_PROBLEM_H_

#include <array>
#include <cstdint>

#include "mgrit/problem.h"

namespace plait::mgrit::examples {

class LorenzProblem : public Problem<std::array<double, 3>> {
 public:
  using Vector = std::array<double, 3>;
  enum class Method { kRungeKutta4, kForwardEuler };
  struct Parameters {
    Method method = Method::kRungeKutta4;
    Vector u0 = {1, 1, 1};
    double initial_guess = 1;  // every component, at every point but the first
  };

  explicit LorenzProblem(const Parameters& parameters) : parameters_(parameters) {}

  void Initialize(std::int64_t point, double t, Vector& u) override;
  void Step(const StepInterval& interval, const Vector& u, Vector& out) override;
  void StepAdjoint(const StepInterval& interval, const Vector& u, const Vector& lambda, Vector& out) override;
  // Unit vector number `index`.
  void InitializeDirection(int index, Vector& w) override;
  void StepTangent(const StepInterval& interval, const Vector& u, const Vector& w, Vector& out) override;

 private:
  Parameters parameters_;
};

}  // namespace plait::mgrit::examples

#endif  // PLAIT_MGRIT_EXAMPLES_LORENZ_PROBLEM_H_
