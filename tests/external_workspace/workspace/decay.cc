// Uses Plait's solver without LibTorch: u' = -u by backward Euler on 64 steps, with MGRIT.
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "comm/communicator.h"
#include "mgrit/solver.h"

struct Decay : plait::mgrit::Problem<double> {
  void Initialize(std::int64_t point, double /*t*/, double& u) override { u = point == 0 ? 1.0 : 0.0; }
  void Step(const plait::mgrit::StepInterval& s, const double& u, double& out) override {
    out = u / (1 + s.dt());
  }
};

int main() {
  plait::mgrit::Options options;
  options.max_levels = 3;
  options.cfactors = {4};
  options.tolerance = 1e-13;
  Decay decay;
  plait::mgrit::Solver solver(decay, {.start = 0, .stop = 5, .steps = 64}, options,
                              plait::comm::Communicator::Self());
  const plait::mgrit::Solution solution = solver.Solve();
  const double serial = std::pow(1 + 5.0 / 64, -64);
  const double difference = std::abs(solver.state<double>(64) - serial);
  std::printf("%d iterations, u(5) = %.10f, differs from the serial sweep by %.1e\n", solution.iterations,
              solver.state<double>(64), difference);
  // 64 steps, each rounded once in either program.
  return solution.converged && difference <= 2 * 64 * 2.3e-16 ? 0 : 1;
}
