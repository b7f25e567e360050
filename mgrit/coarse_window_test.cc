// Asynchronous truncated MGRIT: windows on the coarsest level against a serial program that solves them one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "comm/communicator.h"
#include "comm/testing/world.h"
#include "mgrit/examples/heat_problem.h"
#include "mgrit/examples/lorenz_problem.h"
#include "mgrit/examples/serial_sweep.h"
#include "mgrit/solver.h"

namespace plait::mgrit {
namespace {

using examples::FineInterval;
using examples::HeatProblem;
using examples::LorenzProblem;
using Vector3 = LorenzProblem::Vector;

constexpr double kEps = std::numeric_limits<double>::epsilon();
constexpr int kFactor = 4;
constexpr int kIntervals = 13;
constexpr std::int64_t kSteps = kFactor * kIntervals;
const TimeGrid kTime = {.start = 0, .stop = 0.5, .steps = kSteps};

// The C-points of two levels with F-relaxation.
class Serial {
 public:
  Serial() : u_(kIntervals + 1) {
    for (int k = 0; k <= kIntervals; ++k) problem_.Initialize(k * kFactor, 0, u_[k]);
  }

  // One iteration; returns the residual's norm before it. The window of point k has the points start ... k; it
  // begins with the state of before, and every step carries its difference of fine and coarse step.
  double Iterate(int window) {
    std::vector<Vector3> difference(kIntervals + 1), next = u_;
    double squares = 0;
    for (int k = 1; k <= kIntervals; ++k) {
      const Vector3 fine = Fine(k, u_[k - 1]), coarse = Coarse(k, u_[k - 1]);
      for (int j = 0; j < 3; ++j) {
        difference[k][j] = fine[j] - coarse[j];
        squares += (fine[j] - u_[k][j]) * (fine[j] - u_[k][j]);
      }
    }
    for (int k = 1; k <= kIntervals; ++k) {
      const int start = std::max(0, k - window);
      Vector3 u = u_[start];
      for (int i = start + 1; i <= k; ++i) {
        u = Coarse(i, u);
        for (int j = 0; j < 3; ++j) u[j] += difference[i][j];
      }
      next[k] = u;
    }
    u_ = next;
    return std::sqrt(squares);
  }
  const std::vector<Vector3>& points() const { return u_; }

 private:
  Vector3 Fine(int k, Vector3 u) {
    for (std::int64_t i = kFactor * (k - 1); i < kFactor * k; ++i)
      problem_.Step(FineInterval(kTime, i), Vector3(u), u);
    return u;
  }
  Vector3 Coarse(int k, const Vector3& u) {
    Vector3 out;
    problem_.Step({.t_start = kTime.At(kFactor * (k - 1)), .t_stop = kTime.At(kFactor * k)}, u, out);
    return out;
  }
  LorenzProblem problem_{LorenzProblem::Parameters{}};
  std::vector<Vector3> u_;
};

TEST(CoarseWindow, EveryIterateIsThatOfWindowsSolvedOneByOne) {
  for (const int window : {1, 2, 3, 5, 12, 13, 40}) {
    SCOPED_TRACE(window);
    Serial serial;
    for (int iterations = 1; iterations <= 5; ++iterations) {
      const double norm = serial.Iterate(window);
      LorenzProblem problem({});
      Solver solver(
          problem, kTime,
          {.cfactors = {kFactor}, .cf_sweeps = {0}, .coarse_window = window, .max_iterations = iterations},
          comm::testing::World());
      const Solution solution = solver.Solve();
      // States of size up to 40; errors grow by e^{2.5} or so over this time.
      const double tolerance = 40 * 12 * static_cast<double>(kSteps) * kEps;
      EXPECT_NEAR(solution.last_residual_norm(), norm, tolerance * kIntervals);
      EXPECT_GT(norm, 0);
      for (std::int64_t i = solver.first_point(); solver.owns_points() && i <= solver.last_point(); ++i) {
        if (i % kFactor != 0) continue;
        for (int j = 0; j < 3; ++j) {
          EXPECT_NEAR(solver.state<Vector3>(i)[j], serial.points()[static_cast<std::size_t>(i / kFactor)][j],
                      tolerance)
              << "point " << i;
        }
      }
    }
  }
}

std::vector<Options> Settings() {
  std::vector<Options> all = {{.max_levels = 2, .cfactors = {4}},
                              {.max_levels = 3, .cfactors = {4, 2}},
                              {.max_levels = 3, .cfactors = {3}, .cycle = Cycle::kW},
                              {.max_levels = 3, .cfactors = {4, 2}, .fmg = true, .skip_downcycle = true}};
  all.push_back(all[1]);
  all.back().storage = Storage::kCPoints;
  all.back().c_point_levels = 3;
  for (Options& options : all) options.max_iterations = 3;
  return all;
}

std::vector<std::vector<double>> States(Solver& solver) {
  std::vector<std::vector<double>> points(1 + static_cast<std::size_t>(solver.grid().time().steps));
  solver.Visit([&](std::int64_t point, const State& u) {
    points[static_cast<std::size_t>(point)] = Value<std::vector<double>>(u);
  });
  return points;
}

// With a window of all coarse steps, bitwise the sequential coarse solve. (With CF-sweeps, so that equations are formed
// again in each iteration in both cases.)
TEST(CoarseWindow, OverAllStepsIsTheWholeSolve) {
  for (const bool spatial_coarsening : {false, true}) {
    for (Options options : Settings()) {
      HeatProblem problem({.nx = 9, .spatial_coarsening = spatial_coarsening, .random_guess = true});
      const TimeGrid time = {0, 2, 57};
      Solver whole(problem, time, options, comm::testing::World());
      const Solution expected = whole.Solve();
      std::int64_t steps = time.steps;
      for (int level = 0; level + 1 < options.max_levels; ++level) steps /= AtLevel(options.cfactors, level);
      for (const std::int64_t window : {steps, steps + 5}) {
        options.coarse_window = window;
        Solver windows(problem, time, options, comm::testing::World());
        const Solution actual = windows.Solve();
        for (std::size_t k = 1; k < expected.residual_norms.size(); ++k) {
          EXPECT_GT(expected.residual_norms[k], 0);
          EXPECT_EQ(actual.residual_norms[k], expected.residual_norms[k]) << k;
        }
        EXPECT_EQ(States(windows), States(whole));
      }
      options.coarse_window = 1;
      Solver shorter(problem, time, options, comm::testing::World());
      EXPECT_NE(shorter.Solve().residual_norms.back(), expected.residual_norms.back());
    }
  }
}

// Work on the coarsest level: n to form the equations, then step s of all windows that have one, the first of which
// are known.
TEST(CoarseWindow, TakesTheStepsOfItsWindows) {
  for (const std::int64_t window : {1, 3, 13, 20}) {
    LorenzProblem problem({});
    Solver solver(problem, kTime, {.cfactors = {kFactor}, .coarse_window = window, .max_iterations = 2},
                  comm::testing::World());
    std::int64_t steps[1] = {solver.Solve().work.steps[1]};
    comm::testing::World().AllReduce(comm::BufferOf(absl::MakeSpan(steps)));
    std::int64_t expected = kIntervals;
    for (std::int64_t s = 2; s <= std::min<std::int64_t>(window, kIntervals); ++s)
      expected += kIntervals - s + 1;
    EXPECT_EQ(steps[0], 2 * expected);
  }
}

TEST(CoarseWindow, SameBitsOnAnyRanks) {
  for (const bool periodic : {false, true}) {
    for (Options options : Settings()) {
      for (const std::int64_t window : {1, 2, 5}) {
        options.coarse_window = window;
        options.periodic = periodic;
        HeatProblem alone_problem({.nx = 9, .random_guess = true}), problem({.nx = 9, .random_guess = true});
        const TimeGrid time = {0, 6.283185307179586, 72};
        Solver alone(alone_problem, time, options, comm::Communicator::Self());
        Solver together(problem, time, options, comm::testing::World());
        const Solution expected = alone.Solve(), actual = together.Solve();
        for (std::size_t k = options.skip_downcycle ? 1 : 0; k < expected.residual_norms.size(); ++k) {
          EXPECT_TRUE(std::isfinite(expected.residual_norms[k]));
          EXPECT_EQ(actual.residual_norms[k], expected.residual_norms[k]);
        }
        const auto points = States(alone);
        together.Visit([&](std::int64_t point, const State& u) {
          EXPECT_EQ(Value<std::vector<double>>(u), points[static_cast<std::size_t>(point)]) << point;
        });
      }
    }
  }
}

// The heat equation damps errors: windows of a few steps converge to the serial sweep, and to the periodic solution.
TEST(CoarseWindow, ConvergesToTheSerialSweep) {
  for (const bool periodic : {false, true}) {
    HeatProblem problem({.nx = 9, .spatial_coarsening = false, .random_guess = true});
    const TimeGrid time = {0, 6.283185307179586, 64};
    Solver solver(problem, time,
                  {.cfactors = {4}, .periodic = periodic, .coarse_window = 4, .max_iterations = 40},
                  comm::testing::World());
    solver.Solve();
    const auto expected = periodic ? examples::PeriodicSerialSweep<std::vector<double>>(problem, time)
                                   : examples::SerialSweep<std::vector<double>>(problem, time, time.steps);
    solver.Visit([&](std::int64_t point, const State& state) {
      const auto& u = Value<std::vector<double>>(state);
      for (std::size_t j = 0; j < u.size(); ++j) {
        EXPECT_NEAR(u[j], expected[static_cast<std::size_t>(point)][j], 1e-13) << point;
      }
    });
  }
}

}  // namespace
}  // namespace plait::mgrit
