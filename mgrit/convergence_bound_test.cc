// Two-level convergence for linear steps: one mode, fine step lambda, coarse step mu, N C-intervals of m
// steps, s CF- sweeps. (Dobrev, Kolev, Petersson, Schroder: Two-level convergence theory for multigrid
// reduction in time, SIAM J. Sci. Comput. 39, 2017: Lemma 3.1, 3.2 and Theorem 3.3, there for s = 0 and 1.)
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "comm/communicator.h"
#include "mgrit/solver.h"
#include "mgrit/testing/linear_problems.h"

namespace plait::mgrit {
namespace {

constexpr double kEps = std::numeric_limits<double>::epsilon();
constexpr int kIntervals = 64;

struct Mode {
  double lambda = 0;
  double mu = 0;
  int cfactor = 0;
  int cf_sweeps = 0;
};

double PowerOfLambda(const Mode& mode, int intervals) {
  return std::pow(mode.lambda, intervals * mode.cfactor);
}

// ||e_{k+1}|| <= bound ||e_k||, over the C-points i > 0, whose error at point 0 is 0.
double Bound(const Mode& mode) {
  const double mu = std::fabs(mode.mu);
  return std::fabs(PowerOfLambda(mode, mode.cf_sweeps) * (PowerOfLambda(mode, 1) - mode.mu)) *
         (1 - std::pow(mu, kIntervals - 1 - mode.cf_sweeps)) / (1 - mu);
}

// The errors at the C-points 0 ... N before and after each of `iterations` iterations.
std::vector<std::vector<double>> Errors(const Mode& mode, const std::vector<double>& guess, int iterations) {
  testing::ScalarMode problem(mode.lambda, mode.mu);
  std::vector<double> by_point(static_cast<std::size_t>(kIntervals * mode.cfactor + 1));
  for (int i = 0; i <= kIntervals; ++i) by_point[static_cast<std::size_t>(i * mode.cfactor)] = guess[i];
  problem.set_guess(by_point);
  Options options = {.max_levels = 2, .cfactors = {mode.cfactor}, .cf_sweeps = {mode.cf_sweeps}};
  options.max_iterations = 1;
  options.keep_previous_states = true;
  Solver solver(problem, {0, 1, kIntervals * mode.cfactor}, options, comm::Communicator::Self());
  std::vector<std::vector<double>> errors = {guess};
  for (int k = 0; k < iterations; ++k) {
    solver.Solve();
    errors.emplace_back();
    for (int i = 0; i <= kIntervals; ++i) errors.back().push_back(solver.state<double>(i * mode.cfactor));
  }
  return errors;
}

double Norm(const std::vector<double>& error) {
  double sum = 0;
  for (double value : error) sum += value * value;
  return std::sqrt(sum);
}

// Smooth in the sense of mu, where the bound is nearly reached: the sign of mu to the i-th.
std::vector<double> SlowError(double mu) {
  std::vector<double> guess = {0.0};
  for (int i = 1; i <= kIntervals; ++i) guess.push_back(mu < 0 && i % 2 == 1 ? -1.0 : 1.0);
  return guess;
}

// Backward Euler, the trapezoidal rule and forward Euler for u' = -z u, coarse steps of m times the size.
std::vector<Mode> Modes() {
  std::vector<Mode> modes;
  for (int m : {2, 4, 8}) {
    for (int s : {0, 1, 2}) {
      for (double z : {0.001, 0.01, 0.03, 0.1, 0.5, 2.0, 20.0}) {
        modes.push_back({1 / (1 + z), 1 / (1 + m * z), m, s});
        modes.push_back({(1 - z / 2) / (1 + z / 2), (1 - m * z / 2) / (1 + m * z / 2), m, s});
        if (m * z < 2) modes.push_back({1 - z, 1 - m * z, m, s});
      }
    }
  }
  return modes;
}

TEST(ConvergenceBound, HoldsForEveryIterationAndIsNearlyReached) {
  for (int m : {2, 4, 8}) {
    for (int s : {0, 1, 2}) {
      double nearest = 0;
      for (const Mode& mode : Modes()) {
        if (mode.cfactor != m || mode.cf_sweeps != s) continue;
        const auto errors = Errors(mode, SlowError(mode.mu), 6);
        for (std::size_t k = 0; k + 1 < errors.size(); ++k) {
          // An iteration commits a rounding error of some ulp of the states of each of the N intervals.
          const double rounding = 8 * kEps * kIntervals * Norm(errors[k]) / (1 - std::fabs(mode.mu));
          EXPECT_LE(Norm(errors[k + 1]), Bound(mode) * Norm(errors[k]) + rounding)
              << "lambda " << mode.lambda << " mu " << mode.mu << " m " << m << " s " << s << " iteration "
              << k;
        }
        nearest = std::max(nearest, Norm(errors[1]) / Norm(errors[0]) / Bound(mode));
      }
      EXPECT_GT(nearest, 0.5) << "no mode comes near the bound, m " << m << " s " << s;
    }
  }
}

// The error itself, not only its norm:
//   e_i <- lambda^{s m} (lambda^m - mu) sum over j < i - s of mu^{i - s - 1 - j} e_j.
TEST(ConvergenceBound, ErrorPropagatesAsTheoryHasIt) {
  for (const Mode& mode : Modes()) {
    const std::vector<double> guess = SlowError(1.0);
    const std::vector<double> error = Errors(mode, guess, 1)[1];
    const double factor = PowerOfLambda(mode, mode.cf_sweeps) * (PowerOfLambda(mode, 1) - mode.mu);
    for (int i = 0; i <= kIntervals; ++i) {
      double expected = 0;
      double magnitude = 1;  // of what is added up, in the solver and here
      for (int j = 0; j < i - mode.cf_sweeps; ++j) {
        const double power = std::pow(mode.mu, i - mode.cf_sweeps - 1 - j);
        expected += factor * power * guess[j];
        magnitude += std::fabs(power);
      }
      const double steps = mode.cfactor * (mode.cf_sweeps + 1) + 8;
      EXPECT_NEAR(error[i], expected, kEps * steps * magnitude)
          << "lambda " << mode.lambda << " mu " << mode.mu << " m " << mode.cfactor << " s " << mode.cf_sweeps
          << " C-point " << i;
    }
  }
}

}  // namespace
}  // namespace plait::mgrit
