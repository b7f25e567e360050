// Dahlquist's scalar test equation by BDF2: an example of a multistep method. A state holds the solution at two times,
// u(t) and u(t + gap), where `gap` is half a step of the finest level; on coarse levels the times are farther apart,
// and the formula is that for variable step sizes. The times follow from the StepInterval, so states need not store
// them (as XBraid's shell vectors do).
#ifndef PLAIT_MGRIT_EXAMPLES_DAHLQUIST_BDF2_PROBLEM_H_
#define PLAIT_MGRIT_EXAMPLES_DAHLQUIST_BDF2_PROBLEM_H_

#include <array>
#include <cmath>
#include <cstdint>

#include "mgrit/problem.h"

namespace plait::mgrit::examples {

class DahlquistBdf2Problem : public Problem<std::array<double, 2>> {
 public:
  using Pair = std::array<double, 2>;
  struct Parameters {
    double lambda = -1;
    double u0 = 1;
    double initial_guess = 0;  // at every point but the first
    double gap = 0.5;
  };

  explicit DahlquistBdf2Problem(const Parameters& parameters) : parameters_(parameters) {}

  Pair Exact(double t) const {
    const double u = parameters_.u0 * std::exp(parameters_.lambda * t);
    return {u, u * std::exp(parameters_.lambda * parameters_.gap)};
  }

  void Initialize(std::int64_t point, double t, Pair& u) override {
    u = point == 0 ? Exact(t) : Pair{parameters_.initial_guess, parameters_.initial_guess};
  }
  void Step(const StepInterval& interval, const Pair& u, Pair& out) override {
    const auto [first, second] = FormulasOf(interval);
    out[0] = first.newer * u[1] + first.older * u[0];
    out[1] = second.newer * out[0] + second.older * u[1];
  }
  void StepAdjoint(const StepInterval& interval, const Pair& /*u*/, const Pair& lambda, Pair& out) override {
    const auto [first, second] = FormulasOf(interval);
    const double between = lambda[0] + second.newer * lambda[1];
    out[0] = first.older * between;
    out[1] = first.newer * between + second.older * lambda[1];
  }

 private:
  // u(t) = newer u(t_1) + older u(t_2)
  struct Formula {
    double newer = 0;
    double older = 0;
  };
  struct Formulas {
    Formula first;   // of u(t_stop)
    Formula second;  // of u(t_stop + gap)
  };

  Formula FormulaOf(double t, double t_1, double t_2) const {
    const double h = t - t_1;
    const double ratio = h / (t_1 - t_2);
    const double diagonal = (2 * ratio + 1) / (ratio + 1) - parameters_.lambda * h;
    return {(ratio + 1) / diagonal, -ratio * ratio / (ratio + 1) / diagonal};
  }
  Formulas FormulasOf(const StepInterval& interval) const {
    const double between = interval.t_start + parameters_.gap;
    return {FormulaOf(interval.t_stop, between, interval.t_start),
            FormulaOf(interval.t_stop + parameters_.gap, interval.t_stop, between)};
  }

  Parameters parameters_;
};

}  // namespace plait::mgrit::examples

#endif  // PLAIT_MGRIT_EXAMPLES_DAHLQUIST_BDF2_PROBLEM_H_
