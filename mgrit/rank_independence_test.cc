// Bitwise identical results on any number of ranks: every rank also solves the whole problem alone and compares its
// points.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/testing/world.h"
#include "mgrit/examples/dahlquist_problem.h"
#include "mgrit/examples/heat_problem.h"
#include "mgrit/examples/lorenz_problem.h"
#include "mgrit/solver.h"

namespace plait::mgrit {
namespace {

using examples::DahlquistProblem;
using examples::HeatProblem;
using examples::LorenzProblem;

enum class Equation { kDahlquist, kHeat, kHeatSpatialCoarsening, kLorenz };

struct Case {
  std::string name;
  Equation equation;
  std::int64_t steps;
  Options options;
};
void PrintTo(const Case& c, std::ostream* stream) { *stream << c.name; }

std::unique_ptr<AnyProblem> MakeProblem(Equation equation) {
  switch (equation) {
    case Equation::kDahlquist:
      return std::make_unique<DahlquistProblem>(DahlquistProblem::Parameters{.initial_guess = 0.456});
    case Equation::kHeat:
      return std::make_unique<HeatProblem>(
          HeatProblem::Parameters{.nx = 9, .spatial_coarsening = false, .random_guess = true});
    case Equation::kHeatSpatialCoarsening:
      return std::make_unique<HeatProblem>(HeatProblem::Parameters{.nx = 17, .random_guess = true});
    case Equation::kLorenz:
      return std::make_unique<LorenzProblem>(LorenzProblem::Parameters{});
  }
  return nullptr;
}

std::vector<std::byte> Packed(AnyProblem& problem, const State& u) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(problem.PackedBytes(u)));
  problem.Pack(u, absl::MakeSpan(bytes));
  return bytes;
}

bool SameBits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

// Lorenz's system is chaotic, and the longest coarse steps of some cases are stable on a short time alone.
TimeGrid TimeOf(const Case& c) {
  return {.start = 0, .stop = c.equation == Equation::kLorenz ? 0.4 : 2.0, .steps = c.steps};
}

std::vector<std::int64_t> OfAllRanks(std::vector<std::int64_t> counts) {
  comm::testing::World().AllReduce(comm::BufferOf(absl::MakeSpan(counts)));
  return counts;
}

// By point; a point that was not shown is empty.
std::vector<std::vector<std::byte>> VisitedPoints(AnyProblem& problem, Solver& solver, std::int64_t steps) {
  std::vector<std::vector<std::byte>> points(static_cast<std::size_t>(steps + 1));
  solver.Visit([&](std::int64_t point, const State& u) {
    EXPECT_TRUE(problem.IsFinite(u)) << "point " << point << ": a comparison would mean nothing";
    EXPECT_TRUE(points[static_cast<std::size_t>(point)].empty()) << "point " << point << " was shown twice";
    points[static_cast<std::size_t>(point)] = Packed(problem, u);
  });
  return points;
}

class RankIndependenceTest : public ::testing::TestWithParam<Case> {
 protected:
  // Solves alone and together, `solves` times each, and compares after every solve.
  static void Compare(const Case& c, const Options& options_alone, const Options& options_together,
                      int solves = 1) {
    const TimeGrid time = TimeOf(c);
    const auto problem_alone = MakeProblem(c.equation);
    const auto problem_together = MakeProblem(c.equation);
    Solver alone(*problem_alone, time, options_alone, comm::Communicator::Self());
    Solver together(*problem_together, time, options_together, comm::testing::World());
    for (int solve = 0; solve < solves; ++solve) {
      const Solution solution_alone = alone.Solve();
      const Solution solution_together = together.Solve();
      EXPECT_FALSE(solution_alone.diverged);
      EXPECT_TRUE(SameBits(solution_alone.residual_norms, solution_together.residual_norms))
          << "residual norms";
      EXPECT_EQ(solution_alone.iterations, solution_together.iterations);
      if (options_alone.storage == options_together.storage) {
        EXPECT_EQ(solution_alone.work.steps, OfAllRanks(solution_together.work.steps))
            << "evaluations of Phi";
      }
      const auto expected = VisitedPoints(*problem_alone, alone, c.steps);
      const auto actual = VisitedPoints(*problem_together, together, c.steps);
      for (std::size_t point = 0; point < expected.size(); ++point)
        EXPECT_FALSE(expected[point].empty()) << point;
      int wrong = 0;
      // The first one is the left neighbour's, but for point 0.
      const std::int64_t first = together.first_point() == 0 ? 0 : together.first_point() + 1;
      for (std::int64_t point = together.owns_points() ? first : first + 1; point <= together.last_point();
           ++point) {
        const auto index = static_cast<std::size_t>(point);
        if (actual[index].empty() || actual[index] != expected[index]) ++wrong;
      }
      EXPECT_EQ(wrong, 0) << "points differ, solve " << solve;
    }
  }
};

TEST_P(RankIndependenceTest, SameBits) { Compare(GetParam(), GetParam().options, GetParam().options); }

TEST_P(RankIndependenceTest, SameBitsWithCPointsStored) {
  Options c_points = GetParam().options;
  c_points.storage = Storage::kCPoints;
  Compare(GetParam(), GetParam().options, c_points);
  Compare(GetParam(), c_points, c_points);
}

TEST_P(RankIndependenceTest, SameBitsWithCPointsStoredOnMoreLevels) {
  Options c_points = GetParam().options;
  c_points.storage = Storage::kCPoints;
  for (const int levels : {2, 9}) {
    c_points.c_point_levels = levels;
    Compare(GetParam(), c_points, c_points);
  }
}

TEST_P(RankIndependenceTest, SameBitsWithTheResidualOfTheCycle) {
  Options options = GetParam().options;
  options.residual_time = ResidualTime::kCycle;
  Compare(GetParam(), options, options);
}

TEST_P(RankIndependenceTest, SameBitsWhenSolvedAgain) {
  Options options = GetParam().options;
  options.max_iterations = 2;
  Compare(GetParam(), options, options, /*solves=*/2);
  options.keep_previous_states = true;
  Compare(GetParam(), options, options, /*solves=*/3);
}

// Every point is visited, the ends included, and F-points that were not relaxed are recomputed by Visit.
TEST_P(RankIndependenceTest, SameBitsWithoutFinalRelaxation) {
  Options none = GetParam().options;
  none.final_relaxation = FinalRelaxation::kNone;
  const Case& c = GetParam();
  const TimeGrid time = TimeOf(c);
  const auto problem = MakeProblem(c.equation);
  Solver full(*problem, time, c.options, comm::Communicator::Self());
  full.Solve();
  const auto problem_together = MakeProblem(c.equation);
  Solver together(*problem_together, time, none, comm::testing::World());
  together.Solve();
  const auto actual = VisitedPoints(*problem_together, together, c.steps);
  int wrong = 0;
  for (std::int64_t point = together.first_point() + 1; point <= together.last_point(); ++point) {
    if (actual[static_cast<std::size_t>(point)] != Packed(*problem, full.state(point))) ++wrong;
  }
  EXPECT_EQ(wrong, 0);
}

std::vector<Case> Cases() {
  using E = Equation;
  std::vector<Case> cases = {
      {"TwoLevelsF", E::kDahlquist, 64, {.max_levels = 2, .cfactors = {4}, .cf_sweeps = {0}}},
      {"ThreeLevelsFcf", E::kLorenz, 128, {.max_levels = 3, .cfactors = {4}}},
      {"StepsDivideByNothing", E::kLorenz, 103, {.max_levels = 3, .cfactors = {4}}},
      {"FactorsPerLevel",
       E::kDahlquist,
       211,
       {.max_levels = 4, .cfactors = {5, 3, 2}, .cf_sweeps = {0, 2, 1}}},
      {"MoreRanksThanCPoints", E::kLorenz, 13, {.max_levels = 2, .cfactors = {6}}},
      {"MoreRanksThanCoarsestPoints", E::kDahlquist, 64, {.max_levels = 7}},
      {"MoreRanksThanCoarsestPointsSkipped", E::kDahlquist, 64, {.max_levels = 7, .skip_downcycle = true}},
      {"MoreRanksThanPoints", E::kLorenz, 5, {.max_levels = 3}},
      {"OneInterval", E::kLorenz, 7, {.max_levels = 2, .cfactors = {7}}},
      {"OneLevel", E::kLorenz, 37, {.max_levels = 1}},
      {"WCycle", E::kLorenz, 150, {.max_levels = 4, .cfactors = {3}, .cycle = Cycle::kW}},
      {"FCycle", E::kLorenz, 150, {.max_levels = 4, .cfactors = {3}, .cycle = Cycle::kF}},
      {"FullMultigrid",
       E::kLorenz,
       130,
       {.max_levels = 5, .fmg = true, .fmg_v_cycles = 2, .skip_downcycle = true}},
      {"Weights",
       E::kDahlquist,
       99,
       {.max_levels = 3, .cfactors = {4, 2}, .cf_sweeps = {2}, .c_weights = {0.8, 1.2}}},
      {"Heat", E::kHeat, 90, {.max_levels = 3, .cfactors = {4}}},
      {"SpatialCoarsening", E::kHeatSpatialCoarsening, 90, {.max_levels = 3, .cfactors = {4}}},
      {"SpatialCoarseningSkipped", E::kHeatSpatialCoarsening, 77, {.max_levels = 5, .skip_downcycle = true}},
      {"SpatialCoarseningF", E::kHeatSpatialCoarsening, 61, {.max_levels = 5, .fmg = true}},
  };
  for (Case& c : cases) c.options.max_iterations = 4;
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, RankIndependenceTest, ::testing::ValuesIn(Cases()),
                         [](const ::testing::TestParamInfo<Case>& info) { return info.param.name; });

}  // namespace
}  // namespace plait::mgrit
