// The StepInterval that a step gets: iteration, progress, the current iterate at its end.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "base/testing/nan_is_infinite.h"
#include "comm/communicator.h"
#include "comm/testing/world.h"
#include "mgrit/examples/dahlquist_problem.h"
#include "mgrit/examples/serial_sweep.h"
#include "mgrit/examples/van_der_pol_problem.h"
#include "mgrit/solver.h"
#include "mgrit/testing/recording_problem.h"

namespace plait::mgrit {
namespace {

using examples::DahlquistProblem;
using examples::VanDerPolProblem;
using Vector2 = VanDerPolProblem::Vector;

constexpr double kGuess = 0.456;

// Records the arguments of each step of level 0, and the last state of each point.
class Told : public DahlquistProblem {
 public:
  Told(std::int64_t cfactor, bool has_f_points)
      : DahlquistProblem({.initial_guess = kGuess}), cfactor_(cfactor), has_f_points_(has_f_points) {}

  void Step(const StepInterval& s, const double& u, double& out) override {
    iterations.push_back(s.iteration);
    if (s.level == 0) progress[s.iteration] = s.progress;
    if (s.level == 0) CheckIterate(s);
    EXPECT_TRUE(s.level == 0 || s.iterate != nullptr);
    DahlquistProblem::Step(s, u, out);
    if (s.level == 0) last_[s.index] = out;
  }

  std::vector<int> iterations;
  std::map<int, double> progress;

 private:
  void CheckIterate(const StepInterval& s) {
    const bool c_point = (s.index + 1) % cfactor_ == 0;
    const auto known = last_.find(s.index);
    if (c_point) {
      ASSERT_NE(s.iterate, nullptr);
      if (known == last_.end()) {
        EXPECT_EQ(Value<double>(*s.iterate), kGuess);
      }
    } else if (!has_f_points_ || known == last_.end()) {
      EXPECT_EQ(s.iterate, nullptr) << "point " << s.index + 1;
    } else {
      ASSERT_NE(s.iterate, nullptr) << "point " << s.index + 1;
      EXPECT_EQ(Value<double>(*s.iterate), known->second);
    }
  }

  std::int64_t cfactor_;
  bool has_f_points_;
  std::map<std::int64_t, double> last_;
};

struct Size {
  std::int64_t steps;
  int levels;
  int cfactor;
};
// The last: with C-intervals that several ranks share, where one of them stores an F-point at its end.
const Size kSizes[] = {{64, 3, 4}, {103, 3, 4}, {13, 2, 6}};

TEST(StepContext, IterateIsWhatThePointHolds) {
  for (const Size& size : kSizes) {
    for (const Storage storage : {Storage::kAllPoints, Storage::kCPoints}) {
      Told problem(size.cfactor, storage == Storage::kAllPoints);
      Options options = {.max_levels = size.levels, .cfactors = {size.cfactor}, .max_iterations = 4};
      options.storage = storage;
      Solver solver(problem, {0, 5, size.steps}, options, comm::testing::World());
      solver.Solve();
    }
  }
}

TEST(StepContext, IterationsAndProgressFollowTheSolve) {
  Told problem(4, true);
  const Options options = {.max_levels = 3, .cfactors = {4}, .tolerance = 1e-9};
  Solver solver(problem, {0, 5, 64}, options, comm::testing::World());
  const Solution solution = solver.Solve();
  ASSERT_TRUE(solution.converged);
  ASSERT_GT(solution.iterations, 3);
  for (std::size_t i = 1; i < problem.iterations.size(); ++i) {
    EXPECT_GE(problem.iterations[i], problem.iterations[i - 1]);
  }
  // XBraid's rule: log(r / r_0) / log(tolerance / r_0), all from seven eighths on.
  const double first = solution.residual_norms[0];
  for (const auto& [iteration, progress] : problem.progress) {
    double expected = 0;
    if (iteration > 0) {
      expected = std::log(solution.residual_norms[static_cast<std::size_t>(iteration) - 1] / first) /
                 std::log(1e-9 / first);
    }
    if (expected >= 7.0 / 8) expected = 1;
    EXPECT_NEAR(progress, expected, 1e-14) << "iteration " << iteration;
  }
  EXPECT_EQ(problem.progress.rbegin()->first, solution.iterations);  // the final relaxation
}

TEST(StepContext, WithoutAToleranceStepsAreTight) {
  Told problem(4, true);
  Solver solver(problem, {0, 5, 64}, {.cfactors = {4}, .max_iterations = 3}, comm::testing::World());
  solver.Solve();
  for (const auto& [iteration, progress] : problem.progress) EXPECT_EQ(progress, 1) << iteration;
}

// The last progress of each iteration's steps on level 0.
class Progressing : public DahlquistProblem {
 public:
  Progressing() : DahlquistProblem({.initial_guess = kGuess}) {}
  void Step(const StepInterval& s, const double& u, double& out) override {
    if (s.level == 0) progress[s.iteration] = s.progress;
    DahlquistProblem::Step(s, u, out);
  }
  std::map<int, double> progress;
};

TEST(StepContext, ProgressGoesOnWhereASolveIsContinued) {
  for (const bool skip : {false, true}) {
    Options options = {
        .max_levels = 3, .cfactors = {4}, .skip_downcycle = skip, .max_iterations = 4, .tolerance = 1e-9};
    Progressing whole, parts;
    Solver(whole, {0, 5, 64}, options, comm::testing::World()).Solve();
    EXPECT_GT(whole.progress[3], whole.progress[2]);
    options.max_iterations = 2;
    Solver solver(parts, {0, 5, 64}, options, comm::testing::World());
    for (int again = 0; again < 2; ++again) {
      solver.Solve();
      solver.Continue();
      solver.Continue();
      // Norms differ by the rounding of numbers of size 1.
      for (int k = 0; k < 4; ++k) EXPECT_NEAR(parts.progress[k], whole.progress[k], 1e-6) << k;
    }
  }
}

TEST(InnerTolerance, FallsFromLooseToTight) {
  StepInterval s;
  EXPECT_EQ(s.InnerTolerance(1e-2, 1e-10), 1e-10);  // of a step outside a solve
  s.progress = 0;
  EXPECT_EQ(s.InnerTolerance(1e-2, 1e-10), 1e-2);
  s.progress = 0.25;
  EXPECT_NEAR(s.InnerTolerance(1e-2, 1e-10), 1e-4, 1e-18);
  s.level = 1;
  EXPECT_NEAR(s.InnerTolerance(1e-2, 1e-10), 1e-4, 1e-18);
}

// The guess is the solution, so the first residual is zero; a solve with loose tolerances must still continue.
class InexactAtRest : public DahlquistProblem {
 public:
  InexactAtRest() : DahlquistProblem({.u0 = 0}) {}
  bool IsInexact() const override { return true; }
};

TEST(IsInexact, ConvergesOnlyInATightIteration) {
  InexactAtRest problem;
  Solver solver(problem, {0, 5, 64}, {.tolerance = 1e-9}, comm::testing::World());
  const Solution solution = solver.Solve();
  EXPECT_TRUE(solution.converged);
  EXPECT_EQ(solution.iterations, 2);
}

using VanDerPol = testing::Recording<VanDerPolProblem, Vector2>;

struct Outcome {
  Solution solution;
  std::int64_t newton_iterations = 0;  // of all ranks
  double error = 0;                    // against a tight serial sweep, of all ranks
};

Outcome Solve(const VanDerPolProblem::Parameters& parameters, const TimeGrid& time, double tolerance) {
  VanDerPolProblem problem(parameters);
  Solver solver(problem, time, {.max_levels = 3, .cfactors = {4}, .tolerance = tolerance},
                comm::testing::World());
  Outcome outcome{.solution = solver.Solve()};
  std::int64_t newton[] = {problem.newton_iterations()};
  VanDerPolProblem tight({.starts_at_iterate = false, .loose = 1e-14, .tight = 1e-14});
  const auto serial = examples::SerialSweep<Vector2>(tight, time, time.steps);
  double error[] = {0};
  solver.Visit([&](std::int64_t point, const State& u) {
    const Vector2& expected = serial[static_cast<std::size_t>(point)];
    for (std::size_t c = 0; c < 2; ++c) {
      error[0] = std::max(error[0], base::NanIsInfinite(std::fabs(Value<Vector2>(u)[c] - expected[c])));
    }
  });
  comm::testing::World().AllReduce(comm::BufferOf(absl::MakeSpan(newton)));
  comm::testing::World().AllReduce(comm::BufferOf(absl::MakeSpan(error)), comm::ReduceOp::kMax);
  outcome.newton_iterations = newton[0];
  outcome.error = error[0];
  return outcome;
}

// The same solution with fewer Newton iterations: steps start from the iterate and are only as accurate as necessary.
TEST(VanDerPol, SavesNewtonIterationsAndKeepsTheSolution) {
  const TimeGrid time = {0, 4, 256};
  const Outcome plain = Solve({.starts_at_iterate = false, .loose = 1e-12}, time, 1e-9);
  const Outcome warm = Solve({.loose = 1e-12}, time, 1e-9);
  const Outcome adaptive = Solve({}, time, 1e-9);
  // Errors of two C-intervals and more are damped along the cycle; a jump grows by less than 10.
  const Outcome rough = Solve({.loose = 1e-2}, time, 1e-9);
  for (const Outcome* outcome : {&plain, &warm, &adaptive, &rough}) {
    EXPECT_TRUE(outcome->solution.converged);
    EXPECT_LE(outcome->error, 10 * 64 * 1e-9);
  }
  EXPECT_LT(warm.newton_iterations, 0.8 * static_cast<double>(plain.newton_iterations));
  EXPECT_LT(adaptive.newton_iterations, 0.95 * static_cast<double>(warm.newton_iterations));
}

// Results of steps depend on the iterate and the tolerance that they get: these are the same on any number of ranks,
// and for batched steps.
TEST(VanDerPol, SameBitsOnAnyRanks) {
  for (const auto& [steps, levels, cfactor] : kSizes) {
    for (const bool many : {false, true}) {
      for (const Storage storage : {Storage::kAllPoints, Storage::kCPoints}) {
        const TimeGrid time = {0, 0.03 * static_cast<double>(steps), steps};
        Options options = {
            .max_levels = levels, .cfactors = {cfactor}, .max_iterations = 4, .tolerance = 1e-10};
        options.storage = storage;
        VanDerPol problem_alone(VanDerPolProblem::Parameters{}), problem(VanDerPolProblem::Parameters{});
        problem.set_prefers_many(many);
        Solver alone(problem_alone, time, options, comm::Communicator::Self());
        Solver together(problem, time, options, comm::testing::World());
        EXPECT_EQ(alone.Solve().residual_norms, together.Solve().residual_norms);
        std::vector<Vector2> expected(static_cast<std::size_t>(steps + 1));
        alone.Visit([&](std::int64_t point, const State& u) {
          expected[static_cast<std::size_t>(point)] = Value<Vector2>(u);
        });
        together.Visit([&](std::int64_t point, const State& u) {
          EXPECT_EQ(Value<Vector2>(u), expected[static_cast<std::size_t>(point)]) << "point " << point;
        });
      }
    }
  }
}

}  // namespace
}  // namespace plait::mgrit
