#include "mgrit/options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "mgrit/examples/dahlquist_problem.h"
#include "mgrit/examples/heat_problem.h"
#include "mgrit/grid.h"
#include "mgrit/solver.h"

namespace plait::mgrit {
namespace {

std::string ErrorOf(const Options& options, std::int64_t steps) {
  return std::string(Validate(options, steps).message());
}

TEST(Validate, NamesTheLargestNumberOfLevelsThatFits) {
  EXPECT_NE(ErrorOf({.max_levels = 5, .cfactors = {4}}, 64).find("at most 4 levels"), std::string::npos);
  EXPECT_NE(ErrorOf({.max_levels = 3, .cfactors = {8, 9}}, 64).find("at most 2 levels"), std::string::npos);
  EXPECT_NE(ErrorOf({.max_levels = 2, .cfactors = {65}}, 64).find("at most 1 level"), std::string::npos);
  EXPECT_NE(ErrorOf({.max_levels = 4, .min_coarse_steps = 5, .cfactors = {4}}, 64).find("at most 2 levels"),
            std::string::npos);
}

TEST(Validate, NamesLevelsFactorAndSteps) {
  const std::string error = ErrorOf({.max_levels = 5, .cfactors = {4}}, 64);
  for (const char* part : {"5 levels", "coarsening factor 4", "64 steps"}) {
    EXPECT_NE(error.find(part), std::string::npos) << part << " in: " << error;
  }
}

// The number of levels that Validate names fits, and one more does not.
TEST(Validate, AgreesWithLevelCount) {
  for (std::int64_t steps = 1; steps < 200; ++steps) {
    for (int factor = 2; factor < 7; ++factor) {
      Options options = {.max_levels = 100, .cfactors = {factor}};
      const int fit = LevelCount(options, steps);
      options.max_levels = fit;
      EXPECT_TRUE(Validate(options, steps).ok());
      options.max_levels = fit + 1;
      EXPECT_FALSE(Validate(options, steps).ok());
    }
  }
}

TEST(Validate, RejectsWhatNoSolveCanUse) {
  EXPECT_FALSE(Validate({}, 0).ok());
  EXPECT_FALSE(Validate({}, -3).ok());
  EXPECT_FALSE(Validate({.max_levels = 0}, 64).ok());
  EXPECT_FALSE(Validate({.cfactors = {}}, 64).ok());
  EXPECT_FALSE(Validate({.cfactors = {1}}, 64).ok());
  EXPECT_FALSE(Validate({.cfactors = {4, 0}}, 64).ok());
  EXPECT_FALSE(Validate({.cf_sweeps = {-1}}, 64).ok());
  EXPECT_FALSE(Validate({.cf_sweeps = {}}, 64).ok());
  EXPECT_FALSE(Validate({.c_weights = {}}, 64).ok());
  EXPECT_FALSE(Validate({.max_iterations = 0}, 64).ok());
  EXPECT_FALSE(Validate({.max_levels = 9, .min_coarse_steps = 0}, 64).ok());
  EXPECT_FALSE(Validate({.tolerance = -1}, 64).ok());
  EXPECT_FALSE(Validate({.coarse_window = -1}, 64).ok());
  EXPECT_FALSE(Validate({.delta_rank = -1}, 64).ok());
  EXPECT_FALSE(Validate({.periodic = true, .delta_rank = 1}, 64).ok());
  EXPECT_FALSE(Validate({.delta_rank = 1, .storage = Storage::kCPoints}, 64).ok());
  EXPECT_FALSE(Validate({.max_levels = 1, .coarse_window = 1}, 64).ok());
  EXPECT_FALSE(Validate({.divergence_factor = 1}, 64).ok());
  EXPECT_FALSE(Validate({.c_point_levels = 0}, 64).ok());
  EXPECT_FALSE(Validate({.stagnation_iterations = -1}, 64).ok());
  EXPECT_FALSE(Validate({.stagnation_factor = 0}, 64).ok());
  EXPECT_FALSE(Validate({.stagnation_factor = std::numeric_limits<double>::quiet_NaN()}, 64).ok());
  EXPECT_FALSE(Validate({.tolerance = std::numeric_limits<double>::quiet_NaN()}, 64).ok());
}

// Invalid options that reach the solver end the program with Validate's message, before anything is computed.
TEST(SolverDeathTest, EndsWithTheMessageOfValidate) {
  examples::DahlquistProblem problem({});
  const auto solve = [&](const Options& options) {
    Solver(problem, {0, 1, 64}, options, comm::Communicator::Self()).Solve();
  };
  EXPECT_DEATH(solve({.max_levels = 5, .cfactors = {4}}), "at most 4 levels");
  EXPECT_DEATH(solve({.cfactors = {}}), "at least one entry");
  EXPECT_DEATH(solve({.cfactors = {0}}), "coarsening factor 0");
  EXPECT_DEATH(Partition::Even(64, 2, {.cfactors = {0}}), "coarsening factor 0");
  EXPECT_DEATH(Partition::OfWholeIntervals(64, 2, {.cfactors = {0}}), "coarsening factor 0");
}

TEST(SolverDeathTest, DeltaCorrectionNeedsTangentsAndStatesOfOneShape) {
  examples::HeatProblem coarsens({.nx = 9}), undefined({.nx = 9, .spatial_coarsening = false});
  const Options options = {.delta_rank = 1};
  EXPECT_DEATH(Solver(coarsens, {0, 1, 16}, options, comm::Communicator::Self()), "no spatial coarsening");
  EXPECT_DEATH(Solver(undefined, {0, 1, 16}, options, comm::Communicator::Self()).Solve(),
               "InitializeDirection");
}

// Counts the states that the solver asks for, by level.
struct Counting : examples::DahlquistProblem {
  Counting() : DahlquistProblem({}) {}
  double Make(int level) override {
    ++states[level];
    return 0;
  }
  std::int64_t states[4] = {0, 0, 0, 0};
};

// Of 64, 16 and 4 steps, and one on the coarsest level: that many states fewer, for all but C-points and the last
// point of a rank.
TEST(Storage, LeavesOutTheFPointsOfItsLevels) {
  const std::int64_t f_points[] = {64 - 16, 16 - 4, 4 - 1, 0};
  Counting all;
  Solver(all, {0, 1, 64}, {.max_levels = 4, .cfactors = {4}}, comm::Communicator::Self()).Solve();
  for (const int levels : {1, 2, 3}) {
    Counting some;
    Solver(some, {0, 1, 64},
           {.max_levels = 4, .cfactors = {4}, .storage = Storage::kCPoints, .c_point_levels = levels},
           comm::Communicator::Self())
        .Solve();
    for (int level = 0; level < 4; ++level) {
      EXPECT_EQ(all.states[level] - some.states[level], level < levels ? f_points[level] : 0)
          << "level " << level << " of " << levels;
    }
  }
}

TEST(AtLevel, TheLastEntryServesAllCoarserLevels) {
  const std::vector<int> list = {5, 3};
  EXPECT_EQ(AtLevel(list, 0), 5);
  EXPECT_EQ(AtLevel(list, 1), 3);
  EXPECT_EQ(AtLevel(list, 7), 3);
}

// Every step of every level has one owner, the owner of the level's last fine step; neighbours name each
// other.
TEST(Grid, EveryStepHasOneOwner) {
  for (std::int64_t steps : {1, 5, 64, 103, 211}) {
    for (int ranks : {1, 2, 3, 5, 8, 13}) {
      const Options options = {.max_levels = 30, .cfactors = {3, 2}};
      const Partition partition = Partition::Even(steps, ranks, options);
      std::vector<Grid> grids;
      for (int rank = 0; rank < ranks; ++rank) {
        grids.emplace_back(TimeGrid{0, 1, steps}, options, partition, rank);
      }
      for (int level = 0; level < grids[0].levels(); ++level) {
        std::int64_t next = 0;
        int left = -1;
        for (int rank = 0; rank < ranks; ++rank) {
          const GridLevel& own = grids[rank].level(level);
          if (own.empty()) continue;
          EXPECT_EQ(own.first, next);
          EXPECT_EQ(own.left_rank, left);
          if (left >= 0) {
            EXPECT_EQ(grids[left].level(level).right_rank, rank);
          }
          next = own.last;
          left = rank;
        }
        EXPECT_EQ(next, grids[0].level(level).steps)
            << steps << " steps, " << ranks << " ranks, level " << level;
      }
    }
  }
}

std::int64_t LargestShare(const Partition& partition) {
  std::int64_t largest = 0;
  for (int p = 0; p < partition.positions(); ++p) {
    largest = std::max(largest, partition.last_step(p) - partition.first_step(p));
  }
  return largest;
}

// No rank has more C-intervals, whole or cut short by the end, than an even distribution gives it.
TEST(Partition, IsAsEvenAsWholeIntervalsAllow) {
  EXPECT_EQ(LargestShare(Partition::OfWholeIntervals(128, 6, {.max_levels = 3, .cfactors = {4}})), 24);
  for (const std::int64_t steps : {5, 23, 64, 103, 128, 211}) {
    for (const int ranks : {1, 2, 3, 5, 6, 8, 13}) {
      for (const int factor : {2, 3, 4, 5}) {
        const Options options = {.max_levels = LevelCount({.max_levels = 3, .cfactors = {factor}}, steps),
                                 .cfactors = {factor}};
        const std::int64_t interval = options.max_levels > 1 ? factor : 1;
        const std::int64_t intervals = (steps + interval - 1) / interval;
        const std::int64_t even = (intervals + ranks - 1) / ranks * interval;
        const Partition whole = Partition::OfWholeIntervals(steps, ranks, options);
        EXPECT_LE(LargestShare(whole), even) << steps << " steps, " << ranks << " ranks, factor " << factor;
        for (int p = 1; p < ranks; ++p) {
          EXPECT_TRUE(whole.first_step(p) % interval == 0 || whole.first_step(p) == steps);
        }
        if (intervals >= ranks) {
          EXPECT_LE(LargestShare(Partition::Even(steps, ranks, options)), even);
        }
      }
    }
  }
}

// Where it costs no evenness, a rank owns whole intervals of the coarser levels too.
TEST(Partition, FollowsTheCoarserLevelsWhereTheyAreAsEven) {
  const Partition partition = Partition::OfWholeIntervals(128, 4, {.max_levels = 3, .cfactors = {4}});
  for (int p = 0; p < 4; ++p) EXPECT_EQ(partition.first_step(p), 32 * p);
}

std::string ErrorOfPoints(std::vector<double> points) {
  return std::string(TimeGrid::FromPoints(std::move(points)).status().message());
}

TEST(TimeGrid, RejectsPointsThatAreNoGrid) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_NE(ErrorOfPoints({}).find("at least 2 points, has 0"), std::string::npos);
  EXPECT_NE(ErrorOfPoints({1}).find("at least 2 points, has 1"), std::string::npos);
  EXPECT_NE(ErrorOfPoints({0, 1, 1}).find("point 2 is 1 after 1"), std::string::npos);
  EXPECT_NE(ErrorOfPoints({0, -1}).find("point 1 is -1 after 0"), std::string::npos);
  EXPECT_NE(ErrorOfPoints({0, infinity}).find("point 1 is inf"), std::string::npos);
  EXPECT_NE(ErrorOfPoints({std::nan(""), 1}).find("point 0 is nan"), std::string::npos);
}

TEST(TimeGrid, HasItsPointsAndTheirMirrorImage) {
  const TimeGrid grid = *TimeGrid::FromPoints({1, 1.5, 4, 4.25});
  EXPECT_EQ(grid.steps, 3);
  EXPECT_EQ(grid.start, 1);
  EXPECT_EQ(grid.stop, 4.25);
  const TimeGrid reversed = Reversed(grid);
  for (std::int64_t i = 0; i <= 3; ++i) EXPECT_EQ(reversed.At(i), -grid.At(3 - i));
  EXPECT_EQ(grid.At(2), 4);
  EXPECT_EQ(reversed.start, -4.25);
  EXPECT_EQ(reversed.stop, -1);
  const TimeGrid uniform = Reversed(TimeGrid{.start = 1, .stop = 3, .steps = 4});
  EXPECT_EQ(uniform.At(1), -2.5);
}

TEST(Grid, CoarseStepsSpanTheirFineSteps) {
  const Options options = {.max_levels = 3, .cfactors = {5, 2}};
  const Grid grid({.start = 1, .stop = 3, .steps = 43}, options, Partition::Even(43, 1, options), 0);
  EXPECT_EQ(grid.level(1).steps, 8);
  EXPECT_EQ(grid.level(2).steps, 4);
  const StepInterval interval = grid.Interval(2, 3);
  EXPECT_EQ(interval.fine_start, 30);
  EXPECT_EQ(interval.fine_stop, 40);
  EXPECT_DOUBLE_EQ(interval.t_start, 1 + 2 * 30.0 / 43);
  EXPECT_DOUBLE_EQ(interval.t_stop, 1 + 2 * 40.0 / 43);
}

}  // namespace
}  // namespace plait::mgrit
