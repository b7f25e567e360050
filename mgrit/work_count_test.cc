// Evaluations of Phi per level equal the closed formula of mgrit/README.md, and none is done twice.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "comm/communicator.h"
#include "mgrit/solver.h"
#include "mgrit/testing/linear_problems.h"
#include "mgrit/testing/recording_problem.h"

namespace plait::mgrit {
namespace {

using LinearSystem = testing::Recording<testing::RandomLinearSystem, std::vector<double>>;
using Counts = std::vector<std::int64_t>;

// One iteration on one level: how often the cycle goes down from it, how often equations are formed on it.
struct Visits {
  std::int64_t down = 0;
  std::int64_t formed = 0;
};

Visits VisitsOf(Cycle cycle, std::int64_t v_cycles, bool skipped, std::int64_t level) {
  if (level == 0) return skipped ? Visits{0, 0} : Visits{1, 1};
  if (skipped) return cycle == Cycle::kF ? Visits{v_cycles * level, v_cycles * (level - 1)} : Visits{0, 0};
  const std::int64_t twos = std::int64_t{1} << (level - 1);
  if (cycle == Cycle::kV) return {1, 1};
  if (cycle == Cycle::kW) return {2 * twos, twos};
  return {1 + v_cycles * level, 1 + v_cycles * (level - 1)};
}

void AddIteration(const std::vector<std::int64_t>& n, const Options& options, int iteration, Counts& work) {
  const bool skipped = iteration == 0 && options.skip_downcycle;
  const bool fmg = options.fmg && (options.fmg_iterations < 0 || iteration < options.fmg_iterations);
  const int coarsest = static_cast<int>(n.size()) - 1;
  std::int64_t reused = iteration > 0 && !skipped ? 1 : 0;  // of the restrictions to a level
  Visits finer;
  for (int level = 0; level <= coarsest; ++level) {
    const Visits visits = VisitsOf(fmg ? Cycle::kF : options.cycle, options.fmg_v_cycles, skipped, level);
    const std::int64_t c_points = level == coarsest ? 0 : n[level + 1];
    const std::int64_t solved = level == 0 ? 0 : visits.formed + (skipped ? 1 : 0);
    if (level > 0) {
      reused = AtLevel(options.cf_sweeps, level - 1) == 0 ? finer.down - finer.formed + reused : 0;
      work[level] += visits.formed * n[level] - reused * (n[level] - c_points);  // equations
      work[level] += solved * (n[level] - c_points);                             // F-relaxation on the way up
      work[level] -= visits.formed * (level == coarsest ? 1 : c_points);  // first F-points, known by then
    }
    if (level < coarsest) {
      const std::int64_t sweeps = visits.down * (AtLevel(options.cf_sweeps, level) + 1);
      work[level] += sweeps * ((c_points - 1) * AtLevel(options.cfactors, level) + 1);
    }
    finer = visits;
  }
  if (options.residual_time == ResidualTime::kCycle) work[0] += n[1];
}

Counts Formula(const Options& options, std::int64_t steps) {
  std::vector<std::int64_t> n = {steps};
  while (static_cast<int>(n.size()) < options.max_levels) {
    n.push_back(n.back() / AtLevel(options.cfactors, static_cast<int>(n.size()) - 1));
  }
  Counts work(n.size(), 0);
  work[0] =
      n.size() > 1 ? n[0] - n[1] : n[0];  // once: the F-points of the first interval, the final F-relaxation
  for (int iteration = 0; iteration < options.max_iterations && n.size() > 1; ++iteration) {
    AddIteration(n, options, iteration, work);
  }
  return work;
}

// Every combination, as a check of `visit` on its name and options.
template <typename Check>
void ForAllCycles(const Check& check) {
  for (const Cycle cycle : {Cycle::kV, Cycle::kW, Cycle::kF}) {
    for (const bool fmg : {false, true}) {
      for (const bool skip : {false, true}) {
        for (const std::vector<int>& sweeps :
             std::vector<std::vector<int>>{{0}, {1}, {2}, {0, 1}, {2, 0, 1}}) {
          Options options = {.cf_sweeps = sweeps, .cycle = cycle, .fmg = fmg, .skip_downcycle = skip};
          options.max_iterations = 3;
          if (fmg) options.fmg_iterations = 2;
          check(options);
        }
      }
    }
  }
}

struct Size {
  std::int64_t steps;
  int levels;
  std::vector<int> cfactors;
};
const std::vector<Size>& Sizes() {
  static const std::vector<Size>& sizes =
      *new std::vector<Size>{{64, 2, {2}}, {64, 4, {2}}, {103, 3, {4}}, {211, 4, {5, 3, 2}},
                             {37, 5, {2}}, {9, 2, {9}},  {20, 1, {2}}};
  return sizes;
}

std::string Describe(const Options& options) {
  return "cycle " + std::to_string(static_cast<int>(options.cycle)) + " fmg " + std::to_string(options.fmg) +
         " skip " + std::to_string(options.skip_downcycle) + " sweeps " +
         std::to_string(options.cf_sweeps[0]) + " levels " + std::to_string(options.max_levels) + " factor " +
         std::to_string(options.cfactors[0]);
}

TEST(WorkCount, EqualsTheFormula) {
  for (const Size& size : Sizes()) {
    ForAllCycles([&](Options options) {
      options.max_levels = size.levels;
      options.cfactors = size.cfactors;
      for (const int v_cycles : {1, 2}) {
        for (const ResidualTime time :
             {ResidualTime::kRestriction, ResidualTime::kCycle, ResidualTime::kNever}) {
          for (const bool many : {false, true}) {
            options.fmg_v_cycles = v_cycles;
            options.residual_time = time;
            LinearSystem problem(2u, 1.0, 5u);
            problem.set_prefers_many(many);
            Solver solver(problem, {0, 1, size.steps}, options, comm::Communicator::Self());
            const Solution solution = solver.Solve();
            ASSERT_EQ(solution.work.steps, Formula(options, size.steps))
                << Describe(options) << " many " << many;
            std::int64_t total = 0;
            for (std::int64_t count : solution.work.steps) total += count;
            ASSERT_EQ(total, static_cast<std::int64_t>(problem.evaluations().size()));
          }
        }
      }
    });
  }
}

TEST(WorkCount, EqualsTheFormulaWithCPointsStored) {
  for (const Size& size : Sizes()) {
    ForAllCycles([&](Options options) {
      options.max_levels = size.levels;
      options.cfactors = size.cfactors;
      options.storage = Storage::kCPoints;
      Counts expected = Formula(options, size.steps);
      const std::int64_t m = options.cfactors[0];
      const std::int64_t whole = size.steps / m * m;
      const int down = options.max_iterations - (options.skip_downcycle ? 1 : 0);
      if (size.levels > 1) expected[0] = down * (options.cf_sweeps[0] + 1) * whole + size.steps - whole;
      LinearSystem problem(2u, 1.0, 5u);
      Solver solver(problem, {0, 1, size.steps}, options, comm::Communicator::Self());
      ASSERT_EQ(solver.Solve().work.steps, expected) << Describe(options);
    });
  }
}

// C-points that are exact already do not change between iterations, nor do the steps from them: every CF-sweep of level
// 0 and every coarse solve makes one more interval exact. Beyond these, no step is taken twice from the same state.
template <typename Problem>
std::int64_t RepeatedBeyondTheFront(const Problem& problem, std::int64_t front) {
  std::map<std::tuple<int, std::int64_t, std::vector<std::byte>>, std::int64_t> times;
  for (const auto& evaluation : problem.evaluations()) {
    if (evaluation.interval.fine_stop <= front) continue;
    ++times[{evaluation.interval.level, evaluation.interval.fine_start, evaluation.input}];
  }
  std::int64_t repeated = 0;
  for (const auto& entry : times) repeated += entry.second - 1;
  return repeated;
}

TEST(WorkCount, NoStepIsTakenTwiceFromOneState) {
  ForAllCycles([&](Options options) {
    options.max_levels = 3;
    options.cfactors = {4, 3};
    options.max_iterations = 2;
    LinearSystem problem(3u, 2.5, 11u);
    Solver solver(problem, {0, 1, 211}, options, comm::Communicator::Self());
    solver.Solve();
    const std::int64_t front = 100;
    EXPECT_EQ(RepeatedBeyondTheFront(problem, front), 0) << Describe(options);
  });
}

}  // namespace
}  // namespace plait::mgrit
