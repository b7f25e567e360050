// Dahlquist's scalar test equation u' = lambda u, u(0) = u0, by backward Euler: Phi(u) = u / (1 - dt lambda).
#ifndef PLAIT_MGRIT_EXAMPLES_DAHLQUIST_PROBLEM_H_
#define PLAIT_MGRIT_EXAMPLES_DAHLQUIST_PROBLEM_H_

#include <cmath>
#include <cstdint>

#include "mgrit/problem.h"

namespace plait::mgrit::examples {

class DahlquistProblem : public Problem<double> {
 public:
  struct Parameters {
    double lambda = -1;
    double u0 = 1;
    double initial_guess = 0;  // at every point but the first
  };

  explicit DahlquistProblem(const Parameters& parameters) : parameters_(parameters) {}

  double Exact(double t) const { return parameters_.u0 * std::exp(parameters_.lambda * t); }

  void Initialize(std::int64_t point, double /*t*/, double& u) override {
    u = point == 0 ? parameters_.u0 : parameters_.initial_guess;
  }
  void Step(const StepInterval& interval, const double& u, double& out) override {
    out = u / Denominator(interval);
  }
  void StepAdjoint(const StepInterval& interval, const double& /*u*/, const double& lambda,
                   double& out) override {
    out = lambda / Denominator(interval);
  }

 private:
  double Denominator(const StepInterval& interval) const { return 1.0 - interval.dt() * parameters_.lambda; }

  Parameters parameters_;
};

}  // namespace plait::mgrit::examples

#endif  // PLAIT_MGRIT_EXAMPLES_DAHLQUIST_PROBLEM_H_
