// Checks your own problem before a solver runs on it.
//
//   TEST(MyProblem, Conforms) {
//     MyProblem problem;
//     const mgrit::testing::ConformanceInput<S> input = {
//         .time = {.start = 0, .stop = 1, .steps = 64},
//         .random_state = [](int level, std::uint64_t seed) { ... },     // any state of that level's shape
//         .levels = 2, .cfactor = 4};
//     EXPECT_THAT(mgrit::testing::Violations(problem, input), testing::IsEmpty());
//   }
//
// Each violation is one line that names the requirement of mgrit/problem.h or mgrit/state.h and how it is violated.
// Checked: Copy, Combine, NormSquared, Pack and Unpack; Step and StepMany; StepAdjoint, if asked for; Restrict,
// Interpolate and their adjoints, if the problem coarsens space. Local.
#ifndef PLAIT_MGRIT_TESTING_PROBLEM_CONFORMANCE_H_
#define PLAIT_MGRIT_TESTING_PROBLEM_CONFORMANCE_H_

#include <string>
#include <vector>

#include "mgrit/problem.h"
#include "mgrit/testing/conformance_input.h"
#include "mgrit/testing/problem_conformance_checks.h"

namespace plait::mgrit::testing {

// Empty if no check fails.
template <typename S>
std::vector<std::string> Violations(Problem<S>& problem, const ConformanceInput<S>& input) {
  return ProblemConformance<S>(problem, input).Run();
}

}  // namespace plait::mgrit::testing

#endif  // PLAIT_MGRIT_TESTING_PROBLEM_CONFORMANCE_H_
