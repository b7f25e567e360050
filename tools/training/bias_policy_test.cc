#include "tools/training/bias_policy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace plait::training {
namespace {

// A model of a solver: each direction's error falls by a factor with every iteration.
struct Solver {
  double forward = 1, backward = 1, factor = 0.3;
  double Bias(const SolverChoice& c) const {
    return c.serial ? 0 : forward * std::pow(factor, c.forward) + backward * std::pow(factor, c.backward);
  }
};

BiasPolicy::Measurement Measured(double bias) { return {.bias = bias, .seconds = 1, .exact_seconds = 2}; }

TEST(BiasPolicy, TakesTheFewestIterationsThatKeepTheLimit) {
  const Solver solver;
  for (const double limit : {0.5, 0.1, 0.01, 1e-3}) {
    BiasPolicy policy({.limit = limit, .most_iterations = 20}, {.forward = 1, .backward = 1});
    for (int i = 0; i < 40; ++i) policy.Take(Measured(solver.Bias(policy.iterations())));
    const SolverChoice chosen = policy.choice();
    EXPECT_LE(solver.Bias(chosen), limit);
    SolverChoice fewer = chosen;
    // Raised in turns, the pair is at most one iteration from the least that keeps the limit.
    fewer.forward -= 1;
    fewer.backward -= 1;
    EXPECT_GT(solver.Bias(fewer), limit) << limit;
  }
}

TEST(BiasPolicy, SavesIterationsThatAreNotNeeded) {
  const Solver solver;
  BiasPolicy policy({.limit = 0.1, .most_iterations = 20}, {.forward = 12, .backward = 9});
  for (int i = 0; i < 40; ++i) {
    policy.Take(Measured(solver.Bias(policy.iterations())));
    EXPECT_LE(solver.Bias(policy.iterations()), 0.1) << i;
  }
  EXPECT_LE(policy.choice().forward + policy.choice().backward, 8);
}

TEST(BiasPolicy, FollowsABiasThatGrows) {
  Solver solver = {.factor = 0.2};
  BiasPolicy policy({.limit = 0.1, .most_iterations = 30}, {.forward = 1, .backward = 1});
  int worse = 0;
  for (int i = 0; i < 100; ++i) {
    solver.factor = 0.2 + 0.004 * i;
    const double bias = solver.Bias(policy.iterations());
    worse += bias > 0.1 ? 1 : 0;
    policy.Take(Measured(bias));
  }
  EXPECT_LE(worse, 20);
  EXPECT_LE(solver.Bias(policy.iterations()), 0.15);
}

TEST(BiasPolicy, MoreIterationsThanAreExactAreNotTaken) {
  BiasPolicy policy({.limit = 1e-9, .most_iterations = 4}, {.forward = 2, .backward = 1});
  for (int i = 0; i < 20; ++i) policy.Take(Measured(1));
  EXPECT_EQ(policy.choice(), (SolverChoice{.forward = 4, .backward = 4}));
}

TEST(BiasPolicy, ADivergedSolveIsTooLargeABias) {
  BiasPolicy policy({.limit = 0.1, .most_iterations = 9}, {.forward = 2, .backward = 1});
  policy.Take(Measured(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_EQ(policy.choice(), (SolverChoice{.forward = 2, .backward = 2}));
}

TEST(BiasPolicy, TriesIterationsThatWereRefusedAgainAfterFiveMeasurements) {
  BiasPolicy policy({.limit = 0.1, .most_iterations = 9}, {.forward = 2, .backward = 2});
  policy.Take(Measured(1));
  for (int measurement = 1; measurement < 5; ++measurement) {
    policy.Take(Measured(0));
    EXPECT_EQ(policy.choice(), (SolverChoice{.forward = 2, .backward = 3})) << measurement;
  }
  policy.Take(Measured(0));
  EXPECT_EQ(policy.choice(), (SolverChoice{.forward = 2, .backward = 2}));
}

TEST(BiasPolicy, IsSerialWhereThatIsFasterAndAllowed) {
  for (const bool allowed : {false, true}) {
    BiasPolicy policy({.limit = 0.1, .most_iterations = 9, .may_be_serial = allowed},
                      {.forward = 2, .backward = 1});
    policy.Take({.bias = 0.05, .seconds = 1.02, .exact_seconds = 1});  // no slower than noise
    EXPECT_FALSE(policy.choice().serial);
    policy.Take({.bias = 0.05, .seconds = 2, .exact_seconds = 1});
    EXPECT_EQ(policy.choice().serial, allowed);
    EXPECT_FALSE(policy.iterations().serial);
    policy.Take({.bias = 0.05, .seconds = 0.99, .exact_seconds = 1});  // no faster than noise
    EXPECT_EQ(policy.choice().serial, allowed);
    policy.Take({.bias = 0.05, .seconds = 0.5, .exact_seconds = 1});
    EXPECT_FALSE(policy.choice().serial);
  }
}

TEST(BiasPolicy, GoesOnFromWhatItRestores) {
  BiasPolicy policy({.limit = 0.1, .most_iterations = 9, .may_be_serial = true},
                    {.forward = 2, .backward = 1});
  policy.Restore({.choice = {.forward = 5, .backward = 4, .serial = true}});
  EXPECT_EQ(policy.choice(), (SolverChoice{.forward = 5, .backward = 4, .serial = true}));
  policy.Take({.bias = 0.2, .seconds = 1, .exact_seconds = 2});
  EXPECT_EQ(policy.choice(), (SolverChoice{.forward = 5, .backward = 5}));

  BiasPolicy not_serial({.limit = 0.1, .most_iterations = 9}, {.forward = 2, .backward = 1});
  not_serial.Restore({.choice = {.forward = 5, .backward = 4, .serial = true}});
  EXPECT_FALSE(not_serial.choice().serial);
}

// Iterations that were refused are not tried again by the one that goes on either.
TEST(BiasPolicy, GoesOnAsIfItHadNotBeenInterrupted) {
  const Solver solver;
  const BiasPolicyOptions options = {.limit = 0.1, .slack = 0.9, .most_iterations = 20};
  for (int stop = 1; stop < 20; ++stop) {
    BiasPolicy whole(options, {.forward = 1, .backward = 1});
    for (int i = 0; i < stop; ++i) whole.Take(Measured(solver.Bias(whole.iterations())));
    BiasPolicy resumed(options, {.forward = 1, .backward = 1});
    resumed.Restore(whole.state());
    for (int i = 0; i < 20; ++i) {
      whole.Take(Measured(solver.Bias(whole.iterations())));
      resumed.Take(Measured(solver.Bias(resumed.iterations())));
      EXPECT_EQ(resumed.choice(), whole.choice()) << "stopped at " << stop << ", measurement " << i;
    }
  }
}

}  // namespace
}  // namespace plait::training
