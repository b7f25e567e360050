// Two levels give the states of the serial sweep after N_c iterations with F-relaxation, ceil(N_c / 2) with
// FCF- relaxation, and not before: every FC-sweep or coarse solve carries the exact solution one C-interval
// further. (Dobrev, Kolev, Petersson, Schroder 2017, section 2; here N_c is the number of C-intervals.)
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "mgrit/examples/dahlquist_problem.h"
#include "mgrit/examples/lorenz_problem.h"
#include "mgrit/examples/serial_sweep.h"
#include "mgrit/solver.h"
#include "mgrit/testing/linear_problems.h"

namespace plait::mgrit {
namespace {

constexpr double kEps = std::numeric_limits<double>::epsilon();

template <typename S>
double Norm(const S& u) {
  return std::sqrt(StateOperations<S>::NormSquared(u));
}

struct Errors {
  double largest = 0;  // over all points, of |u - serial|
  double scale = 0;    // over all points, of |serial|
};

template <typename S>
Errors ErrorsAfter(Problem<S>& problem, const TimeGrid& time, Options options, int iterations) {
  options.max_iterations = iterations;
  Solver solver(problem, time, options, comm::Communicator::Self());
  solver.Solve();
  const std::vector<S> serial = examples::SerialSweep(problem, time, time.steps);
  Errors errors;
  for (std::int64_t point = 0; point <= time.steps; ++point) {
    S error = solver.state<S>(point);
    StateOperations<S>::Combine(-1.0, serial[static_cast<std::size_t>(point)], 1.0, error);
    EXPECT_TRUE(std::isfinite(Norm(error)));
    errors.largest = std::max(errors.largest, Norm(error));
    errors.scale = std::max(errors.scale, Norm(serial[static_cast<std::size_t>(point)]));
  }
  return errors;
}

// `amplification`: by how much the problem can enlarge a rounding error between two points, 1 where it
// contracts. The front is exact but for the rounding of U = R r + V - Phi_c(V) + Phi_c(U) and of the
// residual, a few ulp an interval.
template <typename S>
void ExpectExactAfter(Problem<S>& problem, const TimeGrid& time, const Options& options,
                      double amplification) {
  const std::int64_t intervals = time.steps / options.cfactors[0];
  const int sweeps = options.cf_sweeps[0];
  const int needed = static_cast<int>((intervals + sweeps) / (1 + sweeps));
  ASSERT_GT(needed, 1);
  const Errors exact = ErrorsAfter(problem, time, options, needed);
  const double rounding = 8 * kEps * static_cast<double>(intervals) * exact.scale * amplification;
  EXPECT_LE(exact.largest, rounding) << "after " << needed << " iterations";
  const Errors before = ErrorsAfter(problem, time, options, needed - 1);
  EXPECT_GT(before.largest, 4 * rounding)
      << "exact one iteration too early: the problem is too easy for this test";
}

Options TwoLevel(int cfactor, int cf_sweeps) {
  return {.max_levels = 2, .cfactors = {cfactor}, .cf_sweeps = {cf_sweeps}};
}

class ExactnessTest : public ::testing::TestWithParam<int> {};

// Coarse steps of 1 for lambda = -1: the coarse error factor is far from small.
TEST_P(ExactnessTest, Dahlquist) {
  examples::DahlquistProblem problem({.lambda = -1, .u0 = 1, .initial_guess = 50});
  ExpectExactAfter(problem, {0, 24, 24}, TwoLevel(4, GetParam()), 1.0);
}

TEST_P(ExactnessTest, DahlquistWithTrailingPoints) {
  examples::DahlquistProblem problem({.lambda = -1, .u0 = 1, .initial_guess = 50});
  ExpectExactAfter(problem, {0, 23, 23}, TwoLevel(3, GetParam()), 1.0);
}

// Coarse steps of 0.13 are rough. Errors grow by exp(0.9 t) on average, over this short time by less than
// 100.
TEST_P(ExactnessTest, Lorenz) {
  examples::LorenzProblem problem({});
  ExpectExactAfter(problem, {0, 0.8, 24}, TwoLevel(4, GetParam()), 100.0);
}

TEST_P(ExactnessTest, RandomLinearSystems) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    testing::RandomLinearSystem problem(4, 2.0, seed);
    ExpectExactAfter(problem, {0, 1, 29}, TwoLevel(3, GetParam()), 4.0);
  }
}

TEST_P(ExactnessTest, OddNumberOfIntervals) {
  testing::RandomLinearSystem problem(3, 2.0, 7);
  ExpectExactAfter(problem, {0, 1, 35}, TwoLevel(5, GetParam()), 4.0);
}

const auto kName = [](const ::testing::TestParamInfo<int>& info) {
  const char* const names[] = {"F", "FCF", "FCFCF"};
  return std::string(names[info.param]);
};
INSTANTIATE_TEST_SUITE_P(Relaxation, ExactnessTest, ::testing::Values(0, 1, 2), kName);

// More levels need more iterations; in the end they, too, give the serial states.
TEST(Exactness, ThreeLevelsAndAllCycles) {
  for (const Cycle cycle : {Cycle::kV, Cycle::kW, Cycle::kF}) {
    examples::LorenzProblem problem({});
    const TimeGrid time = {0, 0.5, 60};
    const Options options = {.max_levels = 3, .cfactors = {3}, .cycle = cycle};
    const Errors errors = ErrorsAfter(problem, time, options, 20);
    EXPECT_LE(errors.largest, 8 * kEps * 20 * errors.scale * 30.0);
  }
}

}  // namespace
}  // namespace plait::mgrit
