// Sequential time stepping without a solver, as a reference.
#ifndef PLAIT_MGRIT_EXAMPLES_SERIAL_SWEEP_H_
#define PLAIT_MGRIT_EXAMPLES_SERIAL_SWEEP_H_

#include <cmath>
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

// Returns the states at the points 0 ... last_point, starting from `start` at point 0.
template <typename S>
std::vector<S> SerialSweepFrom(Problem<S>& problem, const TimeGrid& time, std::int64_t last_point, S start) {
  std::vector<S> states;
  states.push_back(std::move(start));
  for (std::int64_t index = 0; index < last_point; ++index) {
    S next = problem.Make(0);
    problem.Step(FineInterval(time, index), states.back(), next);
    states.push_back(std::move(next));
  }
  return states;
}

// The same, from the initial condition.
template <typename S>
std::vector<S> SerialSweep(Problem<S>& problem, const TimeGrid& time, std::int64_t last_point) {
  S start = problem.Make(0);
  problem.Initialize(0, time.At(0), start);
  return SerialSweepFrom(problem, time, last_point, std::move(start));
}

// Returns the periodic states at all points: repeats the sweep until a period closes to 1e-15, at most 1000 times.
template <typename S>
std::vector<S> PeriodicSerialSweep(Problem<S>& problem, const TimeGrid& time) {
  std::vector<S> states = SerialSweep(problem, time, time.steps);
  for (int period = 1; period < 1000; ++period) {
    S gap = states.front();
    StateOperations<S>::Combine(-1.0, states.back(), 1.0, gap);
    if (!(std::sqrt(StateOperations<S>::NormSquared(gap)) > 1e-15)) break;
    states = SerialSweepFrom(problem, time, time.steps, std::move(states.back()));
  }
  return states;
}

}  // namespace plait::mgrit::examples

#endif  // PLAIT_MGRIT_EXAMPLES_SERIAL_SWEEP_H_
