// u' = w'(t) + w(t) - u with w(t) = tanh((t - center) / width), by backward Euler. From u = w at the start the solution
// is w, which is smooth except for a layer at `center`.
#ifndef PLAIT_MGRIT_EXAMPLES_LAYER_PROBLEM_H_
#define PLAIT_MGRIT_EXAMPLES_LAYER_PROBLEM_H_

#include <cmath>
#include <cstdint>

#include "mgrit/problem.h"

namespace plait::mgrit::examples {

class LayerProblem : public Problem<double> {
 public:
  struct Parameters {
    double center = 1;
    double width = 0.02;
  };

  explicit LayerProblem(const Parameters& parameters) : parameters_(parameters) {}

  double Exact(double t) const { return std::tanh((t - parameters_.center) / parameters_.width); }
  // w' + w
  double Forcing(double t) const {
    const double w = Exact(t);
    return (1 - w * w) / parameters_.width + w;
  }

  void Initialize(std::int64_t point, double t, double& u) override { u = point == 0 ? Exact(t) : -1; }
  void Step(const StepInterval& interval, const double& u, double& out) override {
    out = (u + interval.dt() * Forcing(interval.t_stop)) / (1 + interval.dt());
  }

 private:
  Parameters parameters_;
};

}  // namespace plait::mgrit::examples

#endif  // PLAIT_MGRIT_EXAMPLES_LAYER_PROBLEM_H_
