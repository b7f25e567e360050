// Periodic problems, u_0 = Phi^N(u_0), against closed forms and dense solves of the fixed point.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/testing/world.h"
#include "mgrit/adjoint.h"
#include "mgrit/examples/heat_problem.h"
#include "mgrit/examples/lorenz_problem.h"
#include "mgrit/examples/serial_sweep.h"
#include "mgrit/solver.h"
#include "mgrit/testing/linear_problems.h"

namespace plait::mgrit {
namespace {

using Vector = std::vector<double>;
using Complex = std::complex<double>;

constexpr double kEps = std::numeric_limits<double>::epsilon();
constexpr double kPeriod = 2 * std::numbers::pi;

// u' = lambda u + cos(3 t) by backward Euler. With u_i = Re(c z^i), z = e^{3 i dt}:
// (1 - lambda dt) c z = c + dt z.
struct Forced : Problem<double> {
  static constexpr double kLambda = -0.3;
  void Initialize(std::int64_t point, double, double& u) override {
    u = 0.4 + std::sin(static_cast<double>(point));
  }
  void Step(const StepInterval& s, const double& u, double& out) override {
    out = (u + s.dt() * std::cos(3 * s.t_stop)) / (1 - kLambda * s.dt());
  }
  static double Exact(std::int64_t point, std::int64_t steps) {
    const double dt = kPeriod / static_cast<double>(steps);
    const Complex z = std::polar(1.0, 3 * dt);
    const Complex c = dt * z / ((1 - kLambda * dt) * z - 1.0);
    return (c * std::polar(1.0, 3 * dt * static_cast<double>(point))).real();
  }
};

std::vector<Options> Settings() {
  std::vector<Options> all = {{.max_levels = 2, .cfactors = {4}, .cf_sweeps = {0}},
                              {.max_levels = 3, .cfactors = {4}},
                              {.max_levels = 4, .cfactors = {2, 4}, .c_weights = {0.9}},
                              {.max_levels = 3, .cfactors = {4}, .cycle = Cycle::kW},
                              {.max_levels = 3, .cfactors = {4}, .fmg = true, .skip_downcycle = true}};
  all.push_back(all[1]);
  all.back().storage = Storage::kCPoints;
  all.push_back(all[3]);
  all.back().storage = Storage::kCPoints;
  all.back().c_point_levels = 3;
  for (Options& options : all) options.periodic = true;
  return all;
}

struct ForcedWithAdjoint : Forced {
  void StepAdjoint(const StepInterval& s, const double&, const double& lambda, double& out) override {
    out = lambda / (1 - kLambda * s.dt());
  }
};

// J = u_0 = u_N: lambda_i = a lambda_{i+1}, lambda_0 = a lambda_1 + 1 = lambda_N, hence lambda_N = 1 / (1 - a^N).
TEST(Periodic, TheAdjointHasTheObjectiveAsSourceOfPointZero) {
  ForcedWithAdjoint problem;
  constexpr std::int64_t kSteps = 32;
  const double factor = 1 / (1 - Forced::kLambda * kPeriod / static_cast<double>(kSteps));
  const double closed = 1 / (1 - std::pow(factor, static_cast<double>(kSteps)));
  for (Options options : Settings()) {
    if (options.storage == Storage::kCPoints) continue;  // the adjoint needs the states of all points
    options.max_iterations = 60;
    const double state = 0, one = 1;  // the equation is linear: its adjoint does not depend on the state
    AdjointProblem<double> adjoint(problem, {0, kPeriod, kSteps},
                                   [&](std::int64_t) -> const double& { return state; });
    adjoint.set_source([&](std::int64_t point) { return point == 0 ? &one : nullptr; });
    Solver solver(adjoint, adjoint.time(), options, comm::testing::World());
    EXPECT_LT(solver.Solve().last_residual_norm(), 8 * kSteps * kEps);
    solver.Visit([&](std::int64_t point, const State& lambda) {
      EXPECT_NEAR(Value<double>(lambda), closed * std::pow(factor, static_cast<double>(point % kSteps)),
                  32 * kSteps * kEps)
          << point;
    });
    adjoint.set_terminal(1);  // would be lost
    const auto solve = [&] { Solver(adjoint, adjoint.time(), options, comm::testing::World()).Solve(); };
    EXPECT_DEATH(solve(), "not periodic: the adjoint has a terminal value");
  }
}

TEST(Periodic, OfAForcedEquationHasTheClosedForm) {
  Forced problem;
  for (Options options : Settings()) {
    for (const std::int64_t steps : {32, 96}) {
      options.max_iterations = 60;
      Solver solver(problem, {0, kPeriod, steps}, options, comm::testing::World());
      const Solution solution = solver.Solve();
      // A state is the sum of about 1 / (1 - e^{lambda 2 pi}) periods of steps, each with three roundings.
      const double tolerance = 8 * static_cast<double>(steps) * kEps;
      EXPECT_LT(solution.last_residual_norm(), tolerance);
      solver.Visit([&](std::int64_t point, const State& u) {
        EXPECT_NEAR(Value<double>(u), Forced::Exact(point, steps), tolerance) << point << " of " << steps;
      });
      if (solver.owns_points() && solver.first_point() == 0) {
        EXPECT_NEAR(solver.state<double>(0), Forced::Exact(0, steps), tolerance);
      }
    }
  }
}

// Point 0 holds the bits of point N, whose guess is that of point 0.
TEST(Periodic, TheEndsAreOneState) {
  Forced problem;
  Options options = {.periodic = true, .max_iterations = 3};
  Solver solver(problem, {0, kPeriod, 64}, options, comm::testing::World());
  solver.set_monitor([](const Progress&) { return true; });
  solver.Solve();
  double ends[2] = {0, 0};
  if (solver.owns_points() && solver.first_point() == 0) ends[0] = solver.state<double>(0);
  if (solver.owns_points() && solver.last_point() == 64) ends[1] = solver.state<double>(64);
  comm::testing::World().AllReduce(comm::BufferOf(absl::MakeSpan(ends)));
  EXPECT_EQ(ends[0], ends[1]);
  EXPECT_NE(ends[0], 0.0);
}

// The solution of the heat equation's scheme is sin(x_j) times that of the scalar scheme with the eigenvalue of
// sin(x): v (1 + mu dt) = v(before) + dt (cos t - sin t).
TEST(Periodic, OfTheHeatEquationHasTheClosedForm) {
  for (const bool spatial_coarsening : {false, true}) {
    examples::HeatProblem problem({.nx = 9, .spatial_coarsening = spatial_coarsening, .initial_guess = 0.5});
    Options options = {.max_levels = 3, .cfactors = {4}, .periodic = true, .max_iterations = 40};
    const std::int64_t steps = 64;
    Solver solver(problem, {0, kPeriod, steps}, options, comm::testing::World());
    solver.Solve();
    const double dx = std::numbers::pi / 8, dt = kPeriod / static_cast<double>(steps);
    const double mu = (2 - 2 * std::cos(dx)) / (dx * dx);
    const Complex z = std::polar(1.0, dt);
    const Complex c =
        dt * z * Complex(1, 1) / ((1 + mu * dt) * z - 1.0);  // cos t - sin t = Re((1 + i) e^{it})
    solver.Visit([&](std::int64_t point, const State& state) {
      const Vector& u = Value<Vector>(state);
      const double v = (c * std::polar(1.0, dt * static_cast<double>(point))).real();
      for (std::size_t j = 0; j < u.size(); ++j) {
        EXPECT_NEAR(u[j], v * std::sin(static_cast<double>(j) * dx), 16 * static_cast<double>(steps) * kEps);
      }
    });
  }
}

// x = A x + b in two unknowns, where A and b come from the map over one period.
TEST(Periodic, OfALinearSystemIsTheDenseFixedPoint) {
  testing::RandomLinearSystem problem(2, 0.9, 7);
  const TimeGrid time = {0, 1, 24};
  const auto over_the_period = [&](Vector start) {
    return examples::SerialSweepFrom<Vector>(problem, time, time.steps, std::move(start)).back();
  };
  const Vector b = over_the_period({0, 0}), x = over_the_period({1, 0}), y = over_the_period({0, 1});
  const double a[4] = {1 - (x[0] - b[0]), -(y[0] - b[0]), -(x[1] - b[1]), 1 - (y[1] - b[1])};
  const double determinant = a[0] * a[3] - a[1] * a[2];
  const Vector start = {(a[3] * b[0] - a[1] * b[1]) / determinant, (a[0] * b[1] - a[2] * b[0]) / determinant};
  const auto expected = examples::SerialSweepFrom<Vector>(problem, time, time.steps, start);
  for (const std::vector<int>& cfactors : std::vector<std::vector<int>>{{2}, {4, 3}}) {
    Options options = {.max_levels = 3, .cfactors = cfactors, .periodic = true, .max_iterations = 60};
    Solver solver(problem, time, options, comm::testing::World());
    solver.Solve();
    solver.Visit([&](std::int64_t point, const State& state) {
      const Vector& u = Value<Vector>(state);
      for (int j = 0; j < 2; ++j) {
        EXPECT_NEAR(u[j], expected[static_cast<std::size_t>(point)][j], 100 * kEps) << point;
      }
    });
  }
}

// Two levels with F-relaxation, written out: V from the C-points before, one coarse sweep from V_0.
// (PP-IC: the coarse initial value is the state before.)
TEST(Periodic, TwoLevelsTakeTheIterationOfTheory) {
  constexpr int kFactor = 4, kIntervals = 6, kSteps = kFactor * kIntervals;
  Forced problem;
  const TimeGrid time = {0, kPeriod, kSteps};
  const auto fine = [&](int k, double u) {
    for (int i = kFactor * (k - 1); i < kFactor * k; ++i) problem.Step(examples::FineInterval(time, i), u, u);
    return u;
  };
  const auto coarse = [&](int k, double u) {
    problem.Step({.t_start = time.At(kFactor * (k - 1)), .t_stop = time.At(kFactor * k)}, u, u);
    return u;
  };
  std::vector<double> v(kIntervals + 1);
  for (int k = 0; k <= kIntervals; ++k) problem.Initialize(k % kIntervals * kFactor, 0, v[k]);
  for (int iterations = 1; iterations <= 5; ++iterations) {
    double squares = 0;
    std::vector<double> next = v;
    for (int k = 1; k <= kIntervals; ++k) {
      squares += std::pow(fine(k, v[k - 1]) - v[k], 2);
      next[k] = coarse(k, next[k - 1]) + fine(k, v[k - 1]) - coarse(k, v[k - 1]);
    }
    v = next;
    v[0] = v[kIntervals];
    for (const Storage storage : {Storage::kAllPoints, Storage::kCPoints}) {
      Options options = {
          .cfactors = {kFactor}, .cf_sweeps = {0}, .periodic = true, .max_iterations = iterations};
      options.storage = storage;
      options.c_point_levels = 2;
      Solver solver(problem, time, options, comm::testing::World());
      const Solution solution = solver.Solve();
      EXPECT_NEAR(solution.last_residual_norm(), std::sqrt(squares), 200 * kEps);
      for (std::int64_t i = solver.first_point(); solver.owns_points() && i <= solver.last_point(); ++i) {
        if (i % kFactor != 0) continue;
        EXPECT_NEAR(solver.state<double>(i), v[static_cast<std::size_t>(i / kFactor)], 200 * kEps) << i;
      }
    }
  }
}

TEST(Periodic, SameBitsOnAnyRanks) {
  examples::HeatProblem alone_problem({.nx = 9, .random_guess = true}),
      problem({.nx = 9, .random_guess = true});
  for (Options options : Settings()) {
    for (const ResidualTime when : {ResidualTime::kRestriction, ResidualTime::kCycle}) {
      options.max_iterations = 3;
      options.residual_time = when;
      const TimeGrid time = {0, kPeriod, 96};
      Solver alone(alone_problem, time, options, comm::Communicator::Self());
      Solver together(problem, time, options, comm::testing::World());
      for (int solve = 0; solve < 2; ++solve) {
        const Solution expected = alone.Solve(), actual = together.Solve();
        for (std::size_t k = options.skip_downcycle ? 1 : 0; k < expected.residual_norms.size(); ++k) {
          EXPECT_GT(expected.residual_norms[k], 0);
          EXPECT_EQ(actual.residual_norms[k], expected.residual_norms[k]);
        }
        std::vector<Vector> points(97);
        alone.Visit([&](std::int64_t point, const State& u) {
          points[static_cast<std::size_t>(point)] = Value<Vector>(u);
        });
        together.Visit([&](std::int64_t point, const State& u) {
          EXPECT_EQ(Value<Vector>(u), points[static_cast<std::size_t>(point)]) << point;
        });
        options.keep_previous_states = true;
      }
    }
  }
}

// A second solve with keep_previous_states continues where the first ended.
TEST(Periodic, GoesOnFromKeptStates) {
  Forced problem;
  Options options = {.max_levels = 3, .periodic = true, .max_iterations = 3, .keep_previous_states = true};
  Solver twice(problem, {0, kPeriod, 64}, options, comm::testing::World());
  const Solution first = twice.Solve(), second = twice.Solve();
  options.max_iterations = 6;
  Solver once(problem, {0, kPeriod, 64}, options, comm::testing::World());
  const Solution expected = once.Solve();
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(first.residual_norms[k], expected.residual_norms[k]);
    // Steps that a cycle could reuse from the previous one are recomputed: the same to rounding.
    EXPECT_NEAR(second.residual_norms[k], expected.residual_norms[k + 3], 64 * 8 * kEps);
  }
}

TEST(Validate, APeriodIsDividedOnEveryLevel) {
  const auto message = [](const Options& options, std::int64_t steps) {
    return std::string(Validate(options, steps).message());
  };
  EXPECT_EQ(message({.max_levels = 3, .cfactors = {4, 2}, .periodic = true}, 24), "");
  EXPECT_NE(message({.max_levels = 3, .cfactors = {4, 2}, .periodic = true}, 28).find("multiple of 8"),
            std::string::npos);
  EXPECT_NE(message({.max_levels = 1, .periodic = true}, 24).find("at least 2 levels"), std::string::npos);
}

}  // namespace
}  // namespace plait::mgrit
