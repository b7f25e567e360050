// Solves that end early, on all ranks at the same iteration: against the norms of a two-level cycle on a
// scalar mode, which are known in closed form.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "comm/testing/world.h"
#include "mgrit/examples/dahlquist_problem.h"
#include "mgrit/examples/heat_problem.h"
#include "mgrit/examples/lorenz_problem.h"
#include "mgrit/examples/serial_sweep.h"
#include "mgrit/solver.h"
#include "mgrit/testing/linear_problems.h"
#include "mgrit/testing/recording_problem.h"

namespace plait::mgrit {
namespace {

using examples::DahlquistProblem;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int kIntervals = 16;
constexpr int kFactor = 4;

void ExpectSameOnAllRanks(const Solution& solution) {
  const std::vector<std::int64_t> mine = {solution.iterations, solution.converged, solution.diverged,
                                          solution.stagnated, solution.interrupted};
  std::vector<std::int64_t> most = mine;
  std::vector<std::int64_t> least = mine;
  comm::testing::World().AllReduce(comm::BufferOf(absl::MakeSpan(most)), comm::ReduceOp::kMax);
  comm::testing::World().AllReduce(comm::BufferOf(absl::MakeSpan(least)), comm::ReduceOp::kMin);
  EXPECT_EQ(most, mine);
  EXPECT_EQ(least, mine);
}

// u <- lambda u on level 0, mu u on level 1, guess 1 everywhere but at point 0, F-relaxation. Errors e_i at
// C-point i: e_i <- (lambda^m - mu) sum over j < i of mu^{i-1-j} e_j; residuals: lambda^m e_{i-1} - e_i.
// (Dobrev, Kolev, Petersson, Schroder, SIAM J. Sci. Comput. 39, 2017, lemma 3.1.)
std::vector<std::vector<double>> ResidualsInTheory(double lambda, double mu, int iterations) {
  const double coarse = std::pow(lambda, kFactor);
  std::vector<double> e(kIntervals + 1, 1.0);
  e[0] = 0;
  std::vector<std::vector<double>> residuals;
  for (int k = 0; k < iterations; ++k) {
    residuals.emplace_back();
    for (int i = 1; i <= kIntervals; ++i) residuals.back().push_back(coarse * e[i - 1] - e[i]);
    std::vector<double> next(e.size(), 0.0);
    for (int i = 1; i <= kIntervals; ++i) {
      for (int j = 0; j < i; ++j) next[i] += (coarse - mu) * std::pow(mu, i - 1 - j) * e[j];
    }
    e = next;
  }
  return residuals;
}

double Norm(TimeNorm norm, const std::vector<double>& residual) {
  double sum = 0, squares = 0, largest = 0;
  for (const double r : residual) {
    sum += std::fabs(r);
    squares += r * r;
    largest = std::fmax(largest, std::fabs(r));
  }
  return norm == TimeNorm::kOne ? sum : norm == TimeNorm::kTwo ? std::sqrt(squares) : largest;
}

Solution SolveMode(double lambda, double mu, Options options) {
  testing::ScalarMode problem(lambda, mu);
  problem.set_guess(std::vector<double>(kIntervals * kFactor + 1, 1.0));
  options.cfactors = {kFactor};
  options.cf_sweeps = {0};
  Solver solver(problem, {0, 1, kIntervals * kFactor}, options, comm::testing::World());
  const Solution solution = solver.Solve();
  ExpectSameOnAllRanks(solution);
  return solution;
}

TEST(TimeNorm, IsThatOfTheResidualsInTheory) {
  const auto residuals = ResidualsInTheory(0.9, 0.5, 6);
  for (const TimeNorm norm : {TimeNorm::kOne, TimeNorm::kTwo, TimeNorm::kMax}) {
    const Solution solution = SolveMode(0.9, 0.5, {.max_iterations = 6, .time_norm = norm});
    for (std::size_t k = 0; k < 6; ++k) {
      // States of size 1 and less round, of up to 8 operations an interval.
      EXPECT_NEAR(solution.residual_norms[k], Norm(norm, residuals[k]),
                  8 * kIntervals * std::numeric_limits<double>::epsilon() * kIntervals)
          << "iteration " << k;
    }
  }
}

// A coarse step that expands: the norms grow until the exact front has passed, by theory above the 50-fold
// at first in iteration `expected`.
TEST(Divergence, IsDetectedWhereTheoryHasIt) {
  constexpr double kLambda = 0.95, kMu = -1.1;
  const auto residuals = ResidualsInTheory(kLambda, kMu, 15);
  for (const TimeNorm norm : {TimeNorm::kOne, TimeNorm::kTwo, TimeNorm::kMax}) {
    const double first = Norm(norm, residuals[0]);
    int expected = 0;
    while (Norm(norm, residuals[static_cast<std::size_t>(expected)]) <= 50 * first) ++expected;
    ASSERT_GT(expected, 0);
    const Solution solution = SolveMode(
        kLambda, kMu, {.max_iterations = 15, .tolerance = 1e-9, .divergence_factor = 50, .time_norm = norm});
    EXPECT_TRUE(solution.diverged);
    EXPECT_FALSE(solution.converged || solution.stagnated || solution.interrupted);
    EXPECT_EQ(solution.iterations, expected + 1);
    // Without the option, the solve continues.
    EXPECT_EQ(SolveMode(kLambda, kMu, {.max_iterations = 15, .tolerance = 1e-9}).iterations, 15);
  }
}

TEST(Stagnation, IsDetectedWhereTheoryHasIt) {
  constexpr double kLambda = 0.99, kMu = 0.2;
  const Options options = {.max_iterations = 12, .stagnation_iterations = 3, .stagnation_factor = 0.5};
  const auto residuals = ResidualsInTheory(kLambda, kMu, 12);
  int expected = 3;
  const auto norm = [&](int k) { return Norm(TimeNorm::kTwo, residuals[static_cast<std::size_t>(k)]); };
  while (std::fmin(std::fmin(norm(expected), norm(expected - 1)), norm(expected - 2)) <
         0.5 * norm(expected - 3)) {
    ++expected;
    ASSERT_LT(expected, 12);
  }
  const Solution solution = SolveMode(kLambda, kMu, options);
  EXPECT_TRUE(solution.stagnated);
  EXPECT_FALSE(solution.converged || solution.diverged || solution.interrupted);
  EXPECT_EQ(solution.iterations, expected + 1);
}

// A tolerance below rounding cannot be reached; the solve reports stagnation.
TEST(Stagnation, AtTheLevelOfRounding) {
  DahlquistProblem problem({.initial_guess = 0.456});
  Solver solver(problem, {0, 5, 256},
                {.max_levels = 3, .max_iterations = 1000, .tolerance = 1e-30, .stagnation_iterations = 4},
                comm::testing::World());
  const Solution solution = solver.Solve();
  ExpectSameOnAllRanks(solution);
  EXPECT_TRUE(solution.stagnated || solution.converged);  // converged if the residual is exactly zero
  EXPECT_LT(solution.iterations, 40);
  EXPECT_LT(solution.last_residual_norm(), 1e-14);
}

// Gives NaN at one point of the finest level, so at first on one rank.
class Breaking : public DahlquistProblem {
 public:
  Breaking() : DahlquistProblem({}) {}
  void Step(const StepInterval& interval, const double& u, double& out) override {
    DahlquistProblem::Step(interval, u, out);
    if (interval.level == 0 && interval.index == 41) out = kNan;
  }
};

TEST(Divergence, OfANumberThatIsNoneInAnyNorm) {
  for (const TimeNorm norm : {TimeNorm::kOne, TimeNorm::kTwo, TimeNorm::kMax}) {
    Breaking problem;
    Solver solver(problem, {0, 5, 64}, {.tolerance = 1e-9, .time_norm = norm}, comm::testing::World());
    const Solution solution = solver.Solve();
    EXPECT_TRUE(solution.diverged);
    EXPECT_FALSE(solution.converged);
    EXPECT_EQ(solution.iterations, 1);
  }
}

TEST(Divergence, OfTheSerialSweep) {
  Breaking problem;
  Solver solver(problem, {0, 5, 64}, {.max_levels = 1}, comm::testing::World());
  EXPECT_TRUE(solver.Solve().converged);  // with one level, the result is not checked
  const Solution solution = solver.SolveSerially();
  EXPECT_TRUE(solution.diverged);
  EXPECT_FALSE(solution.converged);
  EXPECT_TRUE(std::isnan(solution.last_residual_norm()));
  ExpectSameOnAllRanks(solution);
}

// Keeps its state, of which the norm measures the first number only.
class HalfMeasured : public Problem<std::array<double, 2>> {
 public:
  using Pair = std::array<double, 2>;
  explicit HalfMeasured(double unmeasured) : unmeasured_(unmeasured) {}
  void Initialize(std::int64_t, double, Pair& u) override { u = {1, unmeasured_}; }
  void Step(const StepInterval&, const Pair& u, Pair& out) override { out = u; }
  std::optional<double> ResidualNorm(const Pair& residual) override { return std::fabs(residual[0]); }

 private:
  double unmeasured_;
};

TEST(Divergence, OfTheSerialSweepIsThatOfItsLastStateWhateverTheNorm) {
  for (const double value : {kNan, std::numeric_limits<double>::infinity()}) {
    HalfMeasured problem(value);
    const Solution solution = Solver(problem, {0, 5, 64}, {}, comm::testing::World()).SolveSerially();
    EXPECT_TRUE(solution.diverged) << value;
    ExpectSameOnAllRanks(solution);
  }
  // Finite, though its square is not.
  DahlquistProblem large({.u0 = 1e200});
  EXPECT_TRUE(Solver(large, {0, 5, 64}, {}, comm::testing::World()).SolveSerially().converged);
}

// The states of a diverged solve do not affect the serial sweep, nor a later solve.
TEST(SolveSerially, GivesTheBitsOfTheSerialSweep) {
  for (const Storage storage : {Storage::kAllPoints, Storage::kCPoints}) {
    for (const std::int64_t steps : {64, 103, 5}) {
      testing::RandomLinearSystem problem(3, 1.5, 4);
      const TimeGrid time = {0, 1, steps};
      const Options options = {.cfactors = {4}, .max_iterations = 2, .storage = storage};
      Solver solver(problem, time, options, comm::testing::World());
      const Solution first = solver.Solve();
      const Solution serial = solver.SolveSerially();
      EXPECT_TRUE(serial.converged);
      EXPECT_EQ(serial.iterations, 1);
      std::vector<std::int64_t> taken = {serial.work.steps[0], 0};
      const auto expected = examples::SerialSweep<std::vector<double>>(problem, time, steps);
      solver.Visit([&](std::int64_t point, const State& u) {
        taken[1] += Value<std::vector<double>>(u) == expected[static_cast<std::size_t>(point)];
      });
      comm::testing::World().AllReduce(comm::BufferOf(absl::MakeSpan(taken)));
      EXPECT_EQ(taken[0], steps);
      EXPECT_EQ(taken[1], steps + 1);
      EXPECT_EQ(solver.Solve().residual_norms, first.residual_norms);
    }
  }
}

TEST(Observer, HearsOfEveryIterationInOrder) {
  DahlquistProblem problem({.initial_guess = 0.456});
  Solver solver(problem, {0, 5, 64}, {.skip_downcycle = true, .max_iterations = 5}, comm::testing::World());
  std::vector<double> heard;
  solver.set_observer([&](int iteration, const Solution& so_far) {
    EXPECT_EQ(iteration, static_cast<int>(heard.size()));
    EXPECT_EQ(iteration + 1, so_far.iterations);
    heard.push_back(so_far.last_residual_norm());
  });
  std::size_t monitored = 0;
  solver.set_monitor([&](const Progress& progress) {
    EXPECT_EQ(progress.iteration, static_cast<int>(monitored++));
    EXPECT_EQ(std::isnan(progress.residual_norm), progress.iteration == 0);
    return true;
  });
  const Solution solution = solver.Solve();
  EXPECT_FALSE(solution.interrupted);
  EXPECT_EQ(monitored, heard.size());
  ASSERT_EQ(heard.size(), solution.residual_norms.size());
  EXPECT_TRUE(std::isnan(heard[0]));
  for (std::size_t k = 1; k < heard.size(); ++k) EXPECT_EQ(heard[k], solution.residual_norms[k]);
}

TEST(Monitor, EndsTheSolveOnAllRanksIfItDoesOnOne) {
  for (int rank = 0; rank < comm::testing::World().size(); ++rank) {
    DahlquistProblem problem({.initial_guess = 0.456});
    Solver solver(problem, {0, 5, 64}, {.max_levels = 3, .max_iterations = 9}, comm::testing::World());
    solver.set_monitor([&](const Progress& progress) {
      return progress.iteration < 3 || comm::testing::World().rank() != rank;
    });
    const Solution solution = solver.Solve();
    EXPECT_EQ(solution.iterations, 4);
    EXPECT_TRUE(solution.interrupted);
    EXPECT_FALSE(solution.converged || solution.diverged || solution.stagnated);
    ExpectSameOnAllRanks(solution);
  }
}

TEST(Monitor, DoesNotInterruptWhatHasConverged) {
  DahlquistProblem problem({.initial_guess = 0.456});
  Solver solver(problem, {0, 5, 64}, {.tolerance = 1e3}, comm::testing::World());
  solver.set_monitor([](const Progress&) { return false; });
  const Solution solution = solver.Solve();
  EXPECT_TRUE(solution.converged);
  EXPECT_FALSE(solution.interrupted);
}

using Lorenz = testing::Recording<examples::LorenzProblem, std::array<double, 3>>;

std::vector<std::array<double, 3>> Shown(Solver& solver, std::int64_t steps) {
  std::vector<std::array<double, 3>> points(static_cast<std::size_t>(steps + 1));
  solver.Visit([&](std::int64_t point, const State& u) {
    points[static_cast<std::size_t>(point)] = Value<std::array<double, 3>>(u);
  });
  return points;
}

// The states that it gets after iteration k are those of a solve of k + 1 iterations; visiting them has no effect on
// the solve, and no step it causes is marked final.
TEST(Monitor, SeesTheStatesOfTheIteration) {
  for (const Storage storage : {Storage::kAllPoints, Storage::kCPoints}) {
    for (const ResidualTime when : {ResidualTime::kRestriction, ResidualTime::kCycle}) {
      const std::int64_t steps = 103;
      const TimeGrid time = {0, 0.6, steps};  // coarse steps are stable on it
      Options options = {.max_levels = 3, .cfactors = {4}, .max_iterations = 4};
      options.storage = storage;
      options.residual_time = when;
      Lorenz watched(examples::LorenzProblem::Parameters{}), plain(examples::LorenzProblem::Parameters{});
      Solver solver(watched, time, options, comm::testing::World());
      solver.set_monitor([&](const Progress& progress) {
        watched.Forget();
        const auto seen = Shown(progress.solver, steps);
        for (const auto& evaluation : watched.evaluations()) {
          EXPECT_FALSE(evaluation.interval.final && evaluation.interval.index >= 4);
        }
        Options shorter = options;
        shorter.max_iterations = progress.iteration + 1;
        Solver reference(plain, time, shorter, comm::testing::World());
        reference.Solve();
        EXPECT_EQ(seen, Shown(reference, steps)) << "iteration " << progress.iteration;
        return true;
      });
      const Solution solution = solver.Solve();
      Solver reference(plain, time, options, comm::testing::World());
      EXPECT_EQ(solution.residual_norms, reference.Solve().residual_norms);
      EXPECT_EQ(Shown(solver, steps), Shown(reference, steps));
    }
  }
}

// Every C-point's norm once, in order, on every rank.
TEST(ResidualNorm, OfTheUserGetsTheNormsByPoint) {
  testing::ScalarMode problem(0.9, 0.5);
  problem.set_guess(std::vector<double>(kIntervals * kFactor + 1, 1.0));
  Solver solver(problem, {0, 1, kIntervals * kFactor},
                {.cfactors = {kFactor}, .cf_sweeps = {0}, .max_iterations = 3}, comm::testing::World());
  std::vector<std::vector<double>> seen;
  solver.set_residual_norm([&](absl::Span<const double> norms) {
    seen.emplace_back(norms.begin(), norms.end());
    return norms[2] + 0.5;
  });
  const Solution solution = solver.Solve();
  const auto residuals = ResidualsInTheory(0.9, 0.5, 3);
  ASSERT_EQ(seen.size(), 3u);
  for (std::size_t k = 0; k < 3; ++k) {
    ASSERT_EQ(seen[k].size(), residuals[k].size());
    EXPECT_EQ(solution.residual_norms[k], seen[k][2] + 0.5);
    for (std::size_t i = 0; i < seen[k].size(); ++i) {
      EXPECT_NEAR(seen[k][i], std::fabs(residuals[k][i]),
                  8 * kIntervals * std::numeric_limits<double>::epsilon());
    }
  }
}

// The discrete L2 norm in space: the 2-norm times the square root of the mesh size.
class HeatInL2 : public examples::HeatProblem {
 public:
  using HeatProblem::HeatProblem;
  std::optional<double> ResidualNorm(const Vector& r) override {
    return std::sqrt(0.25 * std::inner_product(r.begin(), r.end(), r.begin(), 0.0));
  }
};

TEST(ResidualNorm, OfTheProblemReplacesTheNormOfTheState) {
  const examples::HeatProblem::Parameters parameters = {.nx = 17, .random_guess = true};
  const Options options = {.max_levels = 3, .max_iterations = 4};
  examples::HeatProblem plain(parameters);
  HeatInL2 scaled(parameters);
  Solver solver_plain(plain, {0, 2, 64}, options, comm::testing::World());
  Solver solver_scaled(scaled, {0, 2, 64}, options, comm::testing::World());
  const Solution expected = solver_plain.Solve();
  const Solution actual = solver_scaled.Solve();
  for (std::size_t k = 0; k < 4; ++k) {
    EXPECT_NEAR(actual.residual_norms[k], 0.5 * expected.residual_norms[k],
                32 * std::numeric_limits<double>::epsilon() * expected.residual_norms[k]);
  }
}

}  // namespace
}  // namespace plait::mgrit
