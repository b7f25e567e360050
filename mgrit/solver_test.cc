// When a solve stops, and the states it leaves; on one rank and several.
#include "mgrit/solver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "comm/communicator.h"
#include "comm/testing/world.h"
#include "mgrit/examples/dahlquist_problem.h"
#include "mgrit/examples/serial_sweep.h"
#include "mgrit/testing/linear_problems.h"
#include "mgrit/testing/recording_problem.h"

namespace plait::mgrit {
namespace {

using examples::DahlquistProblem;
using LinearSystem = testing::Recording<testing::RandomLinearSystem, std::vector<double>>;

const TimeGrid kTime = {.start = 0, .stop = 5, .steps = 64};

Solution Solve(AnyProblem& problem, const Options& options, const TimeGrid& time = kTime) {
  Solver solver(problem, time, options, comm::testing::World());
  return solver.Solve();
}

TEST(Stop, AtTheFirstNormBelowTheTolerance) {
  DahlquistProblem problem({.initial_guess = 0.456});
  const Solution all = Solve(problem, {.max_iterations = 8});
  for (int k = 0; k < 8; ++k) {
    const double norm = all.residual_norms[static_cast<std::size_t>(k)];
    const Solution reached = Solve(problem, {.tolerance = std::nextafter(norm, 1.0)});
    EXPECT_EQ(reached.iterations, k + 1);
    EXPECT_TRUE(reached.converged);
    EXPECT_EQ(reached.last_residual_norm(), norm);
    // Strictly below: equal is not enough.
    EXPECT_GT(Solve(problem, {.max_iterations = 8, .tolerance = norm}).iterations, k == 7 ? 7 : k + 1);
  }
}

TEST(Stop, AToleranceRelativeToTheFirstNorm) {
  DahlquistProblem problem({.initial_guess = 0.456});
  for (const bool skip : {false, true}) {
    const Solution all = Solve(problem, {.skip_downcycle = skip, .max_iterations = 6});
    const double first = all.residual_norms[skip ? 1 : 0];
    const double relative = std::nextafter(all.residual_norms[4] / first, 1.0) * (1 + 1e-12);
    const Solution reached =
        Solve(problem, {.skip_downcycle = skip, .tolerance = relative, .relative_tolerance = true});
    EXPECT_EQ(reached.iterations, 5);
    EXPECT_TRUE(reached.converged);
  }
}

// The guess is the solution: with a first norm of zero, a relative tolerance stops at once.
TEST(Stop, AtAFirstNormOfZero) {
  DahlquistProblem problem({.u0 = 0, .initial_guess = 0});
  const Solution solution = Solve(problem, {.tolerance = 1e-9, .relative_tolerance = true});
  EXPECT_EQ(solution.last_residual_norm(), 0.0);
  EXPECT_TRUE(solution.converged);
  EXPECT_EQ(solution.iterations, 1);
}

TEST(Stop, WithoutAToleranceAfterTheLastIteration) {
  DahlquistProblem problem({.initial_guess = 0.456});
  const Solution solution = Solve(problem, {.max_iterations = 40});
  EXPECT_EQ(solution.iterations, 40);
  EXPECT_FALSE(solution.converged);
  EXPECT_EQ(solution.residual_norms.size(), 40u);
}

TEST(Stop, NormsThatAreNeverTakenStopNothing) {
  DahlquistProblem problem({.initial_guess = 0.456});
  const Solution solution =
      Solve(problem, {.max_iterations = 4, .tolerance = 1e9, .residual_time = ResidualTime::kNever});
  EXPECT_EQ(solution.iterations, 4);
  for (double norm : solution.residual_norms) EXPECT_TRUE(std::isnan(norm));
}

// Gives `value` at one point of the finest level, so at first on one rank.
class Breaking : public DahlquistProblem {
 public:
  explicit Breaking(double value) : DahlquistProblem({}), value_(value) {}
  void Step(const StepInterval& interval, const double& u, double& out) override {
    DahlquistProblem::Step(interval, u, out);
    if (interval.level == 0 && interval.index == 41) out = value_;
  }

 private:
  double value_;
};

TEST(Stop, ANormThatIsNotFiniteOnAllRanks) {
  for (const double value :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Breaking problem(value);
    const Solution solution = Solve(problem, {.max_iterations = 10, .tolerance = 1e-9});
    EXPECT_TRUE(solution.diverged);
    EXPECT_FALSE(solution.converged);
    EXPECT_EQ(solution.iterations, 1);
    EXPECT_FALSE(std::isfinite(solution.last_residual_norm()));
  }
}

// Steps of level 0 are marked final once, at their final state, if they lead to F-points of the first C-interval or
// are steps `first` and later; no others are.
void ExpectFinal(const Options& options, std::int64_t steps, bool many, std::int64_t first) {
  LinearSystem problem(3u, 1.5, 4u);
  problem.set_prefers_many(many);
  Solver solver(problem, {.start = 0, .stop = 1, .steps = steps}, options, comm::testing::World());
  solver.Solve();
  std::vector<std::int64_t> marks(static_cast<std::size_t>(steps), 0);
  for (const auto& evaluation : problem.evaluations()) {
    if (!evaluation.interval.final) continue;
    EXPECT_EQ(evaluation.interval.level, 0);
    ++marks[static_cast<std::size_t>(evaluation.interval.index)];
    std::vector<double> input(3);
    StateOperations<std::vector<double>>::Unpack(evaluation.input, input);
    EXPECT_EQ(input, solver.state<std::vector<double>>(evaluation.interval.index));
  }
  comm::testing::World().AllReduce(comm::BufferOf(absl::MakeSpan(marks)));
  const int cfactor = options.cfactors[0];
  for (std::int64_t step = 0; step < steps; ++step) {
    const bool final = (step + 1) % cfactor != 0 && (step < cfactor || step >= first);
    EXPECT_EQ(marks[static_cast<std::size_t>(step)], final ? 1 : 0)
        << "step " << step << " of " << steps << ", many " << many << ", first " << first;
  }
}

TEST(FinalSteps, AreTheStepsToFPointsOnce) {
  for (const std::int64_t steps : {64, 103, 23}) {
    for (const bool many : {false, true}) {
      for (const bool skip : {false, true}) {
        ExpectFinal({.max_levels = 3, .cfactors = {3, 2}, .skip_downcycle = skip, .max_iterations = 3}, steps,
                    many, /*first=*/0);
      }
    }
  }
}

TEST(FinalSteps, AreThoseThatTheFinalRelaxationTakes) {
  for (const std::int64_t steps : {64, 63, 103, 23}) {
    for (const bool many : {false, true}) {
      Options options = {.max_levels = 3, .cfactors = {3, 2}, .max_iterations = 3};
      options.residual_time = ResidualTime::kCycle;
      ExpectFinal(options, steps, many, steps / 3 * 3);  // after the last C-point: no residual needs them
      options.residual_time = ResidualTime::kRestriction;
      options.final_relaxation = FinalRelaxation::kLastInterval;
      ExpectFinal(options, steps, many, (steps - 1) / 3 * 3);
      options.final_relaxation = FinalRelaxation::kNone;
      ExpectFinal(options, steps, many, steps);
    }
  }
}

// Batched steps: bitwise the same states and norms, and the same work, as single steps.
TEST(StepMany, EqualsStep) {
  for (const std::int64_t steps : {64, 103, 37}) {
    for (const Cycle cycle : {Cycle::kV, Cycle::kF}) {
      for (const std::vector<int>& sweeps : {std::vector<int>{1}, std::vector<int>{0, 2}}) {
        const Options options = {
            .max_levels = 3, .cfactors = {4}, .cf_sweeps = sweeps, .cycle = cycle, .max_iterations = 4};
        LinearSystem one(3u, 1.5, 4u);
        LinearSystem many(3u, 1.5, 4u);
        many.set_prefers_many(true);
        Solver solver_one(one, {0, 1, steps}, options, comm::testing::World());
        Solver solver_many(many, {0, 1, steps}, options, comm::testing::World());
        const Solution solution_one = solver_one.Solve();
        const Solution solution_many = solver_many.Solve();
        EXPECT_EQ(solution_one.residual_norms, solution_many.residual_norms);
        EXPECT_EQ(solution_one.work.steps, solution_many.work.steps);
        EXPECT_EQ(one.batches(), 0);
        if (comm::testing::World().size() == 1) {
          EXPECT_GT(many.batches(), 0);
        }
        for (std::int64_t point = solver_one.first_point(); point <= solver_one.last_point(); ++point) {
          if (!solver_one.owns_points()) break;
          EXPECT_EQ(solver_one.state<std::vector<double>>(point),
                    solver_many.state<std::vector<double>>(point));
        }
      }
    }
  }
}

// k solves of one iteration each, with keep_previous_states, equal one solve of k iterations.
TEST(KeepPreviousStates, GoesOnWhereTheSolveBeforeEnded) {
  DahlquistProblem problem({.initial_guess = 0.456});
  const Options at_once = {.max_levels = 3, .max_iterations = 5};
  Options one_by_one = at_once;
  one_by_one.max_iterations = 1;
  one_by_one.keep_previous_states = true;
  Solver solver(problem, kTime, at_once, comm::testing::World());
  const Solution expected = solver.Solve();
  Solver continued(problem, kTime, one_by_one, comm::testing::World());
  for (int k = 0; k < 5; ++k) {
    EXPECT_EQ(continued.Solve().last_residual_norm(), expected.residual_norms[static_cast<std::size_t>(k)])
        << k;
  }
  for (std::int64_t point = solver.first_point(); point <= solver.last_point() && solver.owns_points();
       ++point) {
    EXPECT_EQ(solver.state<double>(point), continued.state<double>(point));
  }
}

// Only the first of the solves starts on the coarsest level: later ones would discard the kept states.
TEST(KeepPreviousStates, GoesOnAlsoWhereTheFirstDownCycleIsSkipped) {
  DahlquistProblem problem({.initial_guess = 0.456});
  const Options at_once = {.max_levels = 3, .skip_downcycle = true, .max_iterations = 5};
  Options one_by_one = at_once;
  one_by_one.max_iterations = 1;
  one_by_one.keep_previous_states = true;
  const Solution expected = Solve(problem, at_once);
  Solver continued(problem, kTime, one_by_one, comm::testing::World());
  EXPECT_TRUE(std::isnan(continued.Solve().last_residual_norm()));
  for (std::size_t k = 1; k < 5; ++k) {
    EXPECT_EQ(continued.Solve().last_residual_norm(), expected.residual_norms[k]) << k;
  }
}

// Also where the cycle changes from one iteration to the next. Rounding of numbers of size 1.
TEST(Continue, IsTheNextIterationOfTheSolveBefore) {
  for (const bool skip : {false, true}) {
    for (const int fmg_iterations : {0, 1, 2}) {
      DahlquistProblem problem({.initial_guess = 0.456});
      Options options = {
          .max_levels = 3, .fmg = fmg_iterations > 0, .skip_downcycle = skip, .max_iterations = 4};
      options.fmg_iterations = fmg_iterations;
      const Solution expected = Solve(problem, options);
      options.max_iterations = 1;
      Solver solver(problem, kTime, options, comm::testing::World());
      for (int again = 0; again < 2; ++again) {
        solver.Solve();
        for (std::size_t k = 1; k < 4; ++k) {
          const Solution solution = solver.Continue();
          EXPECT_EQ(solution.iterations, 1);
          EXPECT_NEAR(solution.last_residual_norm(), expected.residual_norms[k], 1e-15)
              << "skip " << skip << " fmg " << fmg_iterations << " iteration " << k;
        }
      }
    }
  }
}

// A state of a type that has no shape of its own needs Make.
struct Shapeless : Problem<std::vector<double>> {
  void Initialize(std::int64_t, double, std::vector<double>& u) override { u.assign(3, 1.0); }
  void Step(const StepInterval&, const std::vector<double>& u, std::vector<double>& out) override {
    for (std::size_t i = 0; i < std::min(u.size(), out.size()); ++i) out[i] = u[i];
  }
};
// Its guesses are longer than the states of Make.
struct Misshapen : Shapeless {
  std::vector<double> Make(int) override { return std::vector<double>(2); }
};

TEST(SolverDeathTest, StatesWithoutAShapeOrOfAnotherOneAreNamed) {
  const auto solve = [](AnyProblem& problem) {
    Solver(problem, kTime, {}, comm::Communicator::Self()).Solve();
  };
  Shapeless shapeless;
  EXPECT_DEATH(solve(shapeless), "does not define Make");
  Misshapen misshapen;
  EXPECT_DEATH(solve(misshapen), "states of 3 and 2 numbers");
}

TEST(Solve, AgainGivesTheSame) {
  DahlquistProblem problem({.initial_guess = 0.456});
  Solver solver(problem, kTime, {.max_levels = 3, .fmg = true, .max_iterations = 4}, comm::testing::World());
  const Solution first = solver.Solve();
  const Solution second = solver.Solve();
  EXPECT_EQ(first.residual_norms, second.residual_norms);
  EXPECT_EQ(first.work.steps, second.work.steps);
}

TEST(Solve, OneLevelIsTheSerialSweep) {
  DahlquistProblem problem({});
  Solver solver(problem, kTime, {.max_levels = 1}, comm::testing::World());
  const Solution solution = solver.Solve();
  EXPECT_TRUE(solution.converged);
  const std::vector<double> serial = examples::SerialSweep(problem, kTime, kTime.steps);
  for (std::int64_t point = solver.first_point(); point <= solver.last_point() && solver.owns_points();
       ++point) {
    EXPECT_EQ(solver.state<double>(point), serial[static_cast<std::size_t>(point)]);
  }
}

// The end of the solution is valid where it was asked for, also without F-relaxation of the rest.
TEST(Solve, LastsAsLongAsItsSteps) {
  for (const int levels : {1, 2}) {
    DahlquistProblem problem({});
    const Solution solution = Solve(problem, {.max_levels = levels, .max_iterations = 2});
    EXPECT_GT(solution.work.step_seconds, 0);
    EXPECT_GE(solution.seconds, solution.work.step_seconds + solution.work.wait_seconds);
  }
}

TEST(FinalRelaxation, TheEndIsValid) {
  for (const std::int64_t steps : {64, 67}) {
    DahlquistProblem problem({.initial_guess = 0.456});
    const TimeGrid time = {.start = 0, .stop = 5, .steps = steps};
    Options options = {.cfactors = {4}, .max_iterations = 3};
    Solver all(problem, time, options, comm::testing::World());
    all.Solve();
    const auto expect_same_end = [&](const Options& other) {
      Solver solver(problem, time, other, comm::testing::World());
      solver.Solve();
      if (solver.owns_points() && solver.last_point() == steps) {
        EXPECT_EQ(solver.state<double>(steps), all.state<double>(steps));
      }
    };
    options.final_relaxation = FinalRelaxation::kLastInterval;
    expect_same_end(options);
    options.storage = Storage::kCPoints;
    expect_same_end(options);
  }
}

// Steps and sends: everything that one rank alone does, and messages only where there are neighbours.
TEST(WorkCount, MessagesOnlyBetweenRanks) {
  DahlquistProblem problem({.initial_guess = 0.456});
  const Solution solution = Solve(problem, {.max_levels = 3, .max_iterations = 2});
  std::int64_t messages[1] = {solution.work.messages};
  comm::testing::World().AllReduce(comm::BufferOf(absl::MakeSpan(messages)));
  EXPECT_EQ(messages[0] > 0, comm::testing::World().size() > 1);
  EXPECT_EQ(solution.work.message_bytes, solution.work.messages * static_cast<std::int64_t>(sizeof(double)));
}

}  // namespace
}  // namespace plait::mgrit
