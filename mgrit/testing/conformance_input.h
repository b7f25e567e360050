// The inputs of the checks of mgrit/testing/problem_conformance.h.
#ifndef PLAIT_MGRIT_TESTING_CONFORMANCE_INPUT_H_
#define PLAIT_MGRIT_TESTING_CONFORMANCE_INPUT_H_

#include <cstdint>
#include <functional>
#include <limits>

#include "mgrit/grid.h"

namespace plait::mgrit::testing {

enum class AdjointCheck {
  kNone,               // the problem has no StepAdjoint
  kFiniteDifferences,  // J v = (Phi(u + h v) - Phi(u - h v)) / 2h
  kAffine              // Phi(u) = A u + b, so J v = Phi(u + v) - Phi(u), to rounding
};

// `time` and `random_state` are required.
template <typename S>
struct ConformanceInput {
  TimeGrid time = {};
  std::function<S(int level, std::uint64_t seed)> random_state = {};
  int levels = 2;
  int cfactor = 2;
  AdjointCheck adjoint = AdjointCheck::kNone;
  // Unit roundoff of the numbers in a state, and the factor by which a step may amplify rounding.
  double epsilon = std::numeric_limits<double>::epsilon();
  double conditioning = 100;
};

}  // namespace plait::mgrit::testing

#endif  // PLAIT_MGRIT_TESTING_CONFORMANCE_INPUT_H_
