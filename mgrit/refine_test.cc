// Refinement in time: estimates against closed forms of the local error, grids against what was asked for.
#include "mgrit/refine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/testing/nan_is_infinite.h"
#include "comm/communicator.h"
#include "comm/testing/world.h"
#include "mgrit/examples/layer_problem.h"
#include "mgrit/examples/serial_sweep.h"

namespace plait::mgrit {
namespace {

using examples::LayerProblem;

constexpr double kEps = std::numeric_limits<double>::epsilon();

// The same equation by the trapezoidal rule.
class Trapezoidal : public LayerProblem {
 public:
  using LayerProblem::LayerProblem;
  void Step(const StepInterval& s, const double& u, double& out) override {
    const double half = 0.5 * s.dt();
    out = ((1 - half) * u + half * (Forcing(s.t_start) + Forcing(s.t_stop))) / (1 + half);
  }
};

TimeGrid Uneven(std::int64_t steps) {
  std::vector<double> points = {0.0};
  for (std::int64_t i = 0; i < steps; ++i) {
    points.push_back(points.back() + 2.0 / static_cast<double>(steps) * (i / 4 % 2 == 0 ? 1.25 : 0.75));
  }
  return *TimeGrid::FromPoints(points);
}

struct Difference {
  double largest = 0;     // true error of a step
  double difference = 0;  // of estimate and true error, at most
};

// The error of a step from the exact solution, against the estimate.
Difference Estimated(LayerProblem& problem, const TimeGrid& time, int order) {
  Solver solver(problem, time, {.max_levels = 3, .cfactors = {4}, .max_iterations = 30, .tolerance = 1e-13},
                comm::testing::World());
  EXPECT_TRUE(solver.Solve().converged);
  const std::vector<double> estimates = solver.EstimateStepErrors(order);
  EXPECT_EQ(estimates.size(), static_cast<std::size_t>(time.steps));
  Difference result;
  for (std::int64_t i = 0; i < time.steps; ++i) {
    double u = 0;
    problem.Step(examples::FineInterval(time, i), problem.Exact(time.At(i)), u);
    const double error = std::fabs(u - problem.Exact(time.At(i + 1)));
    result.largest = std::fmax(result.largest, error);
    result.difference = std::max(
        result.difference, base::NanIsInfinite(std::fabs(error - estimates[static_cast<std::size_t>(i)])));
  }
  return result;
}

// Errors of order h^{p+1}, estimated to order h^{p+2}: their ratios tend to 2^{p+1} and 2^{p+2} when h is halved.
TEST(EstimateStepErrors, AgreesWithTheTrueErrorToTheOrder) {
  LayerProblem euler({.width = 0.5});
  Trapezoidal trapezoidal({.width = 0.5});
  for (const int order : {1, 2}) {
    LayerProblem& problem = order == 1 ? euler : static_cast<LayerProblem&>(trapezoidal);
    for (const std::int64_t more : {0, 3}) {  // steps after the last C-point
      for (const bool uneven : {false, true}) {
        const auto grid = [&](std::int64_t steps) { return uneven ? Uneven(steps) : TimeGrid{0, 2, steps}; };
        const Difference coarse = Estimated(problem, grid(512 + more), order);
        const Difference fine = Estimated(problem, grid(1024 + more), order);
        EXPECT_NEAR(coarse.largest / fine.largest, std::pow(2, order + 1), 0.1 * std::pow(2, order + 1));
        EXPECT_GT(coarse.difference / fine.difference, 0.8 * std::pow(2, order + 2));
        EXPECT_LT(fine.difference, 0.05 * fine.largest);
      }
    }
  }
}

// After a solve that stops early, with residuals.
TEST(EstimateStepErrors, AreTheSameWhenAskedForAgain) {
  LayerProblem problem({.width = 0.5});
  Solver solver(problem, {0, 2, 64}, {.max_levels = 3, .cfactors = {4}, .max_iterations = 1},
                comm::testing::World());
  solver.Solve();
  const std::vector<double> first = solver.EstimateStepErrors(1);
  const std::vector<double> again = solver.EstimateStepErrors(1);
  ASSERT_EQ(first.size(), again.size());
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(again[i], first[i], 1e-12) << i;
}

const Options kOptions = {
    .max_levels = 6, .cfactors = {2}, .fmg = true, .max_iterations = 20, .tolerance = 1e-10};

double LargestError(const LayerProblem& problem, Solver& solver) {
  double error[1] = {0};
  solver.Visit([&](std::int64_t point, const State& u) {
    const double mine = std::fabs(Value<double>(u) - problem.Exact(solver.grid().time().At(point)));
    error[0] = std::max(error[0], base::NanIsInfinite(mine));
  });
  comm::testing::World().AllReduce(comm::BufferOf(absl::MakeSpan(error)), comm::ReduceOp::kMax);
  return error[0];
}

TEST(SolveRefining, RefinesInTheLayer) {
  LayerProblem problem({.center = 1, .width = 0.02});
  const Refinement refinement = {.order = 1, .tolerance = 1e-5};
  auto refined = SolveRefining(problem, {0, 2, 32}, kOptions, refinement, comm::testing::World());
  ASSERT_TRUE(refined.ok()) << refined.status();
  EXPECT_TRUE(refined->accurate);
  ASSERT_GE(refined->stages.size(), 3u);
  for (const RefinementStage& stage : refined->stages) EXPECT_TRUE(stage.solution.converged);
  EXPECT_LE(refined->stages.back().largest_error, refinement.tolerance);
  const TimeGrid& time = refined->solver->grid().time();
  // Where w'' is below its maximum 0.77 / width^2, a step may be longer as the root of that: a step a 64th of the
  // first lies where it is above 2 * 1e-5 * (64 * 16)^2 = 21.
  for (std::int64_t i = 0; i < time.steps; ++i) {
    const double w = problem.Exact(time.At(i)), h = time.At(i + 1) - time.At(i);
    const double second = std::fabs(2 * w * (1 - w * w)) / (0.02 * 0.02);
    if (h < 2.0 / 32 / 64) {
      EXPECT_LT(std::fabs(time.At(i) - 1), 0.1) << h;
    }
    // No step has more than twice the allowed error.
    EXPECT_LT(0.5 * h * h * second, 2 * refinement.tolerance) << time.At(i);
  }
  // Errors of steps do not grow, so they bound the error when added up; the layer's have both signs.
  const double error = LargestError(problem, *refined->solver);
  EXPECT_LT(error, static_cast<double>(time.steps) * refinement.tolerance);
  const TimeGrid uniform = {0, 2, 4 * time.steps};
  const auto serial = examples::SerialSweep<double>(problem, uniform, uniform.steps);
  double uniform_error = 0;
  for (std::int64_t i = 0; i <= uniform.steps; ++i) {
    const double there = std::fabs(serial[static_cast<std::size_t>(i)] - problem.Exact(uniform.At(i)));
    ASSERT_FALSE(std::isnan(there)) << i;
    uniform_error = std::max(uniform_error, there);
  }
  EXPECT_LT(error, uniform_error);
  // What the solver has found is the serial sweep on its grid.
  const auto expected = examples::SerialSweep<double>(problem, time, time.steps);
  refined->solver->Visit([&](std::int64_t point, const State& u) {
    EXPECT_NEAR(Value<double>(u), expected[static_cast<std::size_t>(point)], 1e-9);
  });
}

// With a method of order 2, the error of a step is n^3 times that of each of its n parts.
TEST(SolveRefining, CutsAStepByTheRootOfItsError) {
  Trapezoidal problem({.width = 0.2});
  const TimeGrid time = {0, 2, 32};
  const Options options = {.max_levels = 3, .cfactors = {2}, .max_iterations = 20, .tolerance = 1e-10};
  const Refinement refinement = {.order = 2, .tolerance = 1e-6, .max_factor = 10, .max_refinements = 1};
  Solver solver(problem, time, options, comm::testing::World());
  solver.Solve();
  std::int64_t parts = 0;
  for (const double error : solver.EstimateStepErrors(2)) {
    parts += std::clamp(static_cast<int>(std::ceil(std::cbrt(error / 1e-6))), 1, 10);
  }
  auto refined = SolveRefining(problem, time, options, refinement, comm::testing::World());
  ASSERT_TRUE(refined.ok()) << refined.status();
  ASSERT_EQ(refined->stages.size(), 2u);
  EXPECT_EQ(refined->stages[1].steps, parts);
}

// Splits the step that contains t = 0.7 into three parts, four times.
TEST(SolveRefining, CutsTheStepsThatAreAskedFor) {
  LayerProblem problem({});
  Refinement refinement = {.max_refinements = 4};
  refinement.factor = [](const StepInterval& s, double) {
    return s.t_start <= 0.7 && 0.7 < s.t_stop ? 3 : 0;
  };
  auto refined = SolveRefining(problem, {0, 2, 16}, kOptions, refinement, comm::testing::World());
  ASSERT_TRUE(refined.ok()) << refined.status();
  EXPECT_FALSE(refined->accurate);
  ASSERT_EQ(refined->stages.size(), 5u);
  for (std::size_t k = 0; k < 5; ++k)
    EXPECT_EQ(refined->stages[k].steps, 16 + 2 * static_cast<std::int64_t>(k));
  const TimeGrid& time = refined->solver->grid().time();
  for (std::int64_t i = 0; i < time.steps; ++i) {
    if (time.At(i) <= 0.7 && 0.7 < time.At(i + 1)) {
      EXPECT_NEAR(time.At(i + 1) - time.At(i), 0.125 / 81, 4 * kEps);
    }
  }
}

TEST(Refined, KeepsThePointsAndCutsEvenly) {
  const TimeGrid fine = Refined({0, 1, 3}, {2, 1, 4});
  ASSERT_EQ(fine.steps, 7);
  const double expected[] = {0, 1.0 / 6, 1.0 / 3, 2.0 / 3, 0.75, 5.0 / 6, 11.0 / 12, 1};
  for (int i = 0; i < 8; ++i) EXPECT_NEAR(fine.At(i), expected[i], 2 * kEps);
  EXPECT_EQ(fine.At(2), (TimeGrid{0, 1, 3}.At(1)));
  EXPECT_EQ(fine.At(3), (TimeGrid{0, 1, 3}.At(2)));
}

// The states of a grid, linearly interpolated, are the guess on the next: exact if the solution is linear.
TEST(SolveRefining, GoesOnFromTheStatesOfTheGridBefore) {
  struct Straight : Problem<std::vector<double>> {
    std::vector<double> Make(int) override { return std::vector<double>(2); }
    void Initialize(std::int64_t, double, std::vector<double>& u) override { u = {5, -3}; }
    void Step(const StepInterval& s, const std::vector<double>& u, std::vector<double>& out) override {
      out = {u[0] + 2 * s.dt(), u[1] - s.dt()};
    }
  };
  for (const Storage storage : {Storage::kAllPoints, Storage::kCPoints}) {
    for (const bool skip : {false, true}) {
      Straight problem;
      Options options = {.max_levels = 3, .cfactors = {2}, .max_iterations = 40, .tolerance = 1e-12};
      options.storage = storage;
      options.skip_downcycle = skip;
      Refinement refinement = {.max_refinements = 2};
      refinement.factor = [](const StepInterval& s, double) { return 1 + static_cast<int>(s.index % 3); };
      auto refined = SolveRefining(problem, {0, 2, 21}, options, refinement, comm::testing::World());
      ASSERT_TRUE(refined.ok()) << refined.status();
      ASSERT_EQ(refined->stages.size(), 3u);
      const double first = refined->stages[0].solution.residual_norms[0];
      EXPECT_TRUE(skip ? std::isnan(first) : first > 0.1) << first;
      // Of the guess: the down-cycle of these grids is not skipped.
      EXPECT_LT(refined->stages[1].solution.residual_norms[0], 1e-12);
      EXPECT_LT(refined->stages[2].solution.residual_norms[0], 1e-12);
    }
  }
}

TEST(SolveRefining, SameBitsOnAnyRanks) {
  LayerProblem problem({.width = 0.05});
  const Refinement refinement = {.tolerance = 1e-4};
  for (const std::vector<int>& cfactors : std::vector<std::vector<int>>{{2}, {4, 3}}) {
    Options options = kOptions;
    options.cfactors = cfactors;
    auto alone = SolveRefining(problem, {0, 2, 29}, options, refinement, comm::Communicator::Self());
    auto together = SolveRefining(problem, {0, 2, 29}, options, refinement, comm::testing::World());
    ASSERT_TRUE(alone.ok() && together.ok());
    ASSERT_EQ(alone->stages.size(), together->stages.size());
    for (std::size_t k = 0; k < alone->stages.size(); ++k) {
      EXPECT_EQ(alone->stages[k].steps, together->stages[k].steps);
      EXPECT_EQ(alone->stages[k].largest_error, together->stages[k].largest_error);
      EXPECT_EQ(alone->stages[k].solution.residual_norms, together->stages[k].solution.residual_norms);
    }
    Solver& solver = *together->solver;
    for (std::int64_t i = solver.first_point(); solver.owns_points() && i <= solver.last_point(); ++i) {
      EXPECT_EQ(solver.state<double>(i), alone->solver->state<double>(i)) << i;
      EXPECT_EQ(solver.grid().time().At(i), alone->solver->grid().time().At(i)) << i;
    }
  }
}

TEST(SolveRefining, SaysWhatCannotBe) {
  LayerProblem problem({});
  const auto message = [&](const Refinement& refinement, const Options& options) {
    return std::string(
        SolveRefining(problem, {0, 2, 16}, options, refinement, comm::testing::World()).status().message());
  };
  EXPECT_NE(message({.order = 0}, {}).find("order >= 1"), std::string::npos);
  EXPECT_NE(message({.tolerance = 0}, {}).find("tolerance > 0"), std::string::npos);
  EXPECT_NE(message({.max_factor = 1}, {}).find("max_factor >= 2"), std::string::npos);
  EXPECT_NE(message({.max_steps = 15}, {}).find("max_steps >= 16"), std::string::npos);
  EXPECT_NE(message({}, {.periodic = true}).find("periodic"), std::string::npos);
  EXPECT_NE(message({}, {.max_levels = 1}).find("at least 2 levels"), std::string::npos);
  EXPECT_NE(message({}, {.max_levels = 3, .cfactors = {17}}).find("at least 2 levels"), std::string::npos);
  EXPECT_NE(message({}, {.cfactors = {1}}).find("too small"), std::string::npos);
}

// In the first interval dt^2 is 0 in floating point, and so is the difference that the estimate divides by it.
TEST(SolveRefining, AnEstimateThatIsNotANumberEndsIt) {
  std::vector<double> points;
  for (int i = 0; i <= 4; ++i) points.push_back(i * 1e-200);
  for (int i = 1; i <= 12; ++i) points.push_back(i / 8.0);
  LayerProblem problem({.width = 0.5});
  const auto refined =
      SolveRefining(problem, *TimeGrid::FromPoints(points), {.cfactors = {4}, .tolerance = 1e-12},
                    {.tolerance = 1e3}, comm::testing::World());
  ASSERT_TRUE(refined.ok()) << refined.status();
  EXPECT_TRUE(std::isnan(refined->stages.back().largest_error)) << refined->stages.back().largest_error;
  EXPECT_FALSE(refined->accurate);
}

}  // namespace
}  // namespace plait::mgrit
