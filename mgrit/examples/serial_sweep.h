// The plain way: one step after the other, without a solver.
#ifndef PLAIT_MGRIT_EXAMPLES_SERIAL_SWEEP_H_
#define PLAIT_MGRIT_EXAMPLES_SERIAL_SWEEP_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "mgrit/grid.h"
#include "mgrit/problem.h"

namespace plait::mgrit::examples {

// The step from point `index` to the next on level 0.
inline StepInterval FineInterval(const TimeGrid& time, std::int64_t index) {
  return {.level = 0,
          .index = index,
          .fine_start = index,
          .fine_stop = index + 1,
          .t_start = time.At(index),
          .t_stop = time.At(index + 1)};
}

// The states of the points 0 ... last_point.
template <typename S>
std::vector<S> SerialSweep(Problem<S>& problem, const TimeGrid& time, std::int64_t last_point) {
  std::vector<S> states;
  states.push_back(problem.Make(0));
  problem.Initialize(0, time.At(0), states.back());
  for (std::int64_t index = 0; index < last_point; ++index) {
    S next = problem.Make(0);
    problem.Step(FineInterval(time, index), states.back(), next);
    states.push_back(std::move(next));
  }
  return states;
}

}  // namespace plait::mgrit::examples

#endif  // PLAIT_MGRIT_EXAMPLES_SERIAL_SWEEP_H_
