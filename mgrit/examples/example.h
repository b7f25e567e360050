// Shared by the examples: solves, prints the residual history, compares with the serial sweep.
#ifndef PLAIT_MGRIT_EXAMPLES_EXAMPLE_H_
#define PLAIT_MGRIT_EXAMPLES_EXAMPLE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "comm/communicator.h"
#include "mgrit/examples/report.h"
#include "mgrit/examples/serial_sweep.h"
#include "mgrit/examples/solver_flags.h"
#include "mgrit/solver.h"

namespace plait::mgrit::examples {

template <typename S>
struct Example {
  std::string title = {};
  Problem<S>* problem = nullptr;
  TimeGrid time = {};
  int delta_rank = 0;                      // Options::delta_rank
  std::function<S(double t)> exact = {};   // exact solution; empty if unknown
  std::function<void()> after_solve = {};  // called before anything else steps the problem
};

// Collective. Every rank computes the serial sweep up to its last point (all points of a periodic problem), outside the
// timed solve.
template <typename S>
LargestErrors Compare(const Example<S>& example, const Options& options, Solver& solver) {
  const auto norm_of_difference = [](const S& x, S y) {
    StateOperations<S>::Combine(-1.0, x, 1.0, y);
    return std::sqrt(StateOperations<S>::NormSquared(y));
  };
  const std::vector<S> serial = options.periodic
                                    ? PeriodicSerialSweep(*example.problem, example.time)
                                    : SerialSweep(*example.problem, example.time, solver.last_point());
  LargestErrors errors;
  solver.Visit([&](std::int64_t point, const State& state) {
    const S& u = Value<S>(state);
    errors.against_serial =
        Larger(errors.against_serial, norm_of_difference(serial[static_cast<std::size_t>(point)], u));
    if (!example.exact) return;
    errors.against_exact =
        Larger(errors.against_exact, norm_of_difference(example.exact(example.time.At(point)), u));
  });
  return errors;
}

// Collective. INVALID_ARGUMENT if the flags do not fit; errors of writing --history, on all ranks.
template <typename S>
absl::Status SolveAndReport(const comm::Communicator& world, const Example<S>& example) {
  PLAIT_ASSIGN_OR_RETURN(Options options, OptionsFromFlags());
  options.delta_rank = example.delta_rank;
  PLAIT_RETURN_IF_ERROR(Validate(options, example.time.steps));
  const bool prints = world.rank() == 0;
  if (prints) std::printf("%s\n", example.title.c_str());
  if (prints) PrintSettings(options, example.time.steps);
  Solver solver(*example.problem, example.time, options, world);
  double before = std::numeric_limits<double>::quiet_NaN();
  solver.set_observer([&](int iteration, const Solution& so_far) {
    const double norm = so_far.last_residual_norm();
    if (prints) PrintIteration(options, iteration, norm, before);
    before = norm;
  });
  const Solution solution = solver.Solve();
  if (example.after_solve) example.after_solve();
  if (prints) PrintOutcome(options, solution);
  Summarize(world, solution, Compare(example, options, solver));
  return WriteHistory(world, solution);
}

}  // namespace plait::mgrit::examples

#endif  // PLAIT_MGRIT_EXAMPLES_EXAMPLE_H_
