// Van der Pol's oscillator x' = y, y' = mu (1 - x^2) y - x, by backward Euler with Newton's method in every step: an
// example of an inexact step. Newton's method starts from the current iterate at the end of the step
// (StepInterval::iterate), and its tolerance follows the residual of the solve (StepInterval::InnerTolerance).
#ifndef PLAIT_MGRIT_EXAMPLES_VAN_DER_POL_PROBLEM_H_
#define PLAIT_MGRIT_EXAMPLES_VAN_DER_POL_PROBLEM_H_

#include <array>
#include <cstdint>

#include "mgrit/problem.h"

namespace plait::mgrit::examples {

class VanDerPolProblem : public Problem<std::array<double, 2>> {
 public:
  using Vector = std::array<double, 2>;
  struct Parameters {
    double mu = 2;
    Vector u0 = {2, 0};             // also the guess at every other point
    bool starts_at_iterate = true;  // false: at the state before the step
    double loose = 1e-8;            // tolerance of Newton's method, max norm of its residual, at first
    double tight = 1e-12;           // and near convergence; equal to `loose`: constant
  };

  explicit VanDerPolProblem(const Parameters& parameters) : parameters_(parameters) {}

  void Initialize(std::int64_t /*point*/, double /*t*/, Vector& u) override { u = parameters_.u0; }
  void Step(const StepInterval& interval, const Vector& u, Vector& out) override;
  void StepAdjoint(const StepInterval& interval, const Vector& u, const Vector& lambda, Vector& out) override;
  bool IsInexact() const override { return parameters_.loose != parameters_.tight; }

  // Total of all steps so far, on this rank.
  std::int64_t newton_iterations() const { return newton_iterations_; }

 private:
  Parameters parameters_;
  std::int64_t newton_iterations_ = 0;
};

}  // namespace plait::mgrit::examples

#endif  // PLAIT_MGRIT_EXAMPLES_VAN_DER_POL_PROBLEM_H_
