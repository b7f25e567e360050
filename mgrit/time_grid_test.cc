// Time grids whose steps are not equal, and numbers of steps that no factor divides: forward and adjoint solves
// against plain sweeps, on one rank and several.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "base/testing/nan_is_infinite.h"
#include "comm/communicator.h"
#include "comm/testing/world.h"
#include "mgrit/adjoint.h"
#include "mgrit/examples/dahlquist_problem.h"
#include "mgrit/examples/lorenz_problem.h"
#include "mgrit/examples/serial_sweep.h"
#include "mgrit/solver.h"

namespace plait::mgrit {
namespace {

using examples::DahlquistProblem;
using examples::FineInterval;
using Vector3 = examples::LorenzProblem::Vector;

constexpr double kEps = std::numeric_limits<double>::epsilon();

// Steps that grow by a quarter, shrink again, and so on, with a sum of about `stop`.
std::vector<double> UnevenPoints(double stop, std::int64_t steps) {
  std::vector<double> points = {0.0};
  for (std::int64_t i = 0; i < steps; ++i) {
    const double size = 1 + 0.25 * static_cast<double>(i % 5) - 0.5 * static_cast<double>(i % 3 == 1);
    points.push_back(points.back() + stop / static_cast<double>(steps) * size);
  }
  return points;
}
TimeGrid Uneven(double stop, std::int64_t steps) { return *TimeGrid::FromPoints(UnevenPoints(stop, steps)); }

double Largest(const Vector3& u) {
  double largest = 0;
  for (const double x : u) largest = std::max(largest, base::NanIsInfinite(std::fabs(x)));
  return largest;
}

// The states of the own points, or of the adjoint by forward point, against `expected`; by magnitude, of all
// ranks, relative to the largest expected.
template <typename PointOf>
double LargestError(const Solver& solver, const std::vector<Vector3>& expected, const PointOf& point_of) {
  double error[2] = {0, 0};
  for (const Vector3& u : expected) error[1] = std::max(error[1], Largest(u));
  for (std::int64_t j = solver.first_point(); solver.owns_points() && j <= solver.last_point(); ++j) {
    Vector3 u = solver.state<Vector3>(j);
    StateOperations<Vector3>::Combine(-1.0, expected[static_cast<std::size_t>(point_of(j))], 1.0, u);
    error[0] = std::max(error[0], Largest(u));
  }
  comm::testing::World().AllReduce(comm::BufferOf(absl::MakeSpan(error, 1)), comm::ReduceOp::kMax);
  return error[0] / error[1];
}

// The intervals of the steps that are taken, by level and fine start.
class Lorenz : public examples::LorenzProblem {
 public:
  Lorenz() : LorenzProblem({}) {}
  void Step(const StepInterval& s, const Vector& u, Vector& out) override {
    forward.insert({s.level, s.fine_start, s.fine_stop, s.index});
    times_are_right =
        times_are_right && s.t_start == time.At(s.fine_start) && s.t_stop == time.At(s.fine_stop);
    LorenzProblem::Step(s, u, out);
  }
  void StepAdjoint(const StepInterval& s, const Vector& u, const Vector& lambda, Vector& out) override {
    adjoint.insert({s.level, s.fine_start, s.fine_stop, s.index});
    times_are_right =
        times_are_right && s.t_start == time.At(s.fine_start) && s.t_stop == time.At(s.fine_stop);
    LorenzProblem::StepAdjoint(s, u, lambda, out);
  }
  using Seen = std::set<std::array<std::int64_t, 4>>;
  TimeGrid time;
  Seen forward, adjoint;
  bool times_are_right = true;
};

// Every remainder of the number of steps, on all levels; converged, both solves are the plain sweeps. After the
// last C-point of a level there are F-points alone: the last of them in time in a forward solve, the first in an
// adjoint solve, whose levels count from the other end. Where the remainder is zero, both have the same
// intervals; else those of the adjoint have no index.
void ExpectSweeps(const TimeGrid& time, const std::vector<int>& cfactors, int levels) {
  SCOPED_TRACE(std::to_string(time.steps) + " steps");
  Lorenz problem;
  problem.time = time;
  const auto n = static_cast<std::size_t>(time.steps);
  const std::vector<Vector3> states = examples::SerialSweep<Vector3>(problem, time, time.steps);
  std::vector<Vector3> lambdas(n + 1, Vector3{1, -0.5, 0.25});
  for (std::size_t i = n; i-- > 0;) {
    problem.StepAdjoint(FineInterval(time, static_cast<std::int64_t>(i)), states[i], lambdas[i + 1],
                        lambdas[i]);
  }
  problem.forward.clear();
  problem.adjoint.clear();
  const Options options = {.max_levels = levels, .cfactors = cfactors, .max_iterations = 20};
  const Partition partition = Partition::OfWholeIntervals(time.steps, comm::testing::World().size(), options);
  Solver forward(problem, time, options, comm::testing::World(), partition);
  forward.Solve();
  AdjointProblem<Vector3> adjoint(
      problem, time, [&](std::int64_t i) -> const Vector3& { return forward.state<Vector3>(i); });
  adjoint.set_terminal(lambdas.back());
  Solver backward(adjoint, adjoint.time(), options, comm::testing::World(), partition.Mirrored());
  backward.Solve();
  // Rounding of the forward states enters the Jacobians; both grow along the sweep as lambda itself does.
  const double tolerance = 100 * kEps * static_cast<double>(time.steps);
  EXPECT_LE(LargestError(forward, states, [](std::int64_t j) { return j; }), tolerance);
  EXPECT_LE(LargestError(backward, lambdas, [&](std::int64_t j) { return time.steps - j; }), tolerance);
  EXPECT_TRUE(problem.times_are_right);
  for (const auto& [level, start, stop, index] : problem.adjoint) {
    const bool of_the_forward_level = start % (stop - start) == 0;
    EXPECT_EQ(index, of_the_forward_level ? start / (stop - start) : StepInterval::kNoIndex);
  }
  std::int64_t stride = 1;
  for (int level = 0; level + 1 < levels; ++level) stride *= AtLevel(cfactors, level);
  if (time.steps % stride == 0 && comm::testing::World().size() == 1) {
    for (const auto& interval : problem.adjoint) EXPECT_TRUE(problem.forward.count(interval)) << interval[1];
  }
}

TEST(TimeGrid, NoNumberOfStepsNeedsToBeDivisible) {
  for (std::int64_t steps = 12; steps <= 25; ++steps) {
    ExpectSweeps({0, 0.4, steps}, {4, 3}, 3);
    ExpectSweeps({0, 0.4, steps}, {5}, 2);
  }
}

TEST(TimeGrid, NonUniformForwardAndAdjoint) {
  for (const std::int64_t steps : {12, 24, 37, 64}) {
    ExpectSweeps(Uneven(0.4, steps), {4, 3}, 3);
    ExpectSweeps(Uneven(0.4, steps), {2}, 3);
  }
}

// Backward Euler's product of 1 / (1 + dt_i), whose logarithm is a sum over the grid.
TEST(TimeGrid, OfDahlquistHasTheClosedForm) {
  const TimeGrid time = Uneven(3, 103);
  DahlquistProblem problem({.lambda = -1, .initial_guess = 0.3});
  Solver solver(problem, time, {.max_levels = 3, .cfactors = {4}, .max_iterations = 25},
                comm::testing::World());
  solver.Solve();
  double expected = 1;
  const std::vector<double> points = UnevenPoints(3, 103);
  for (std::size_t i = 1; i < points.size(); ++i) expected /= 1 + (points[i] - points[i - 1]);
  if (solver.owns_points() && solver.last_point() == time.steps) {
    EXPECT_NEAR(solver.state<double>(time.steps), expected, 103 * 4 * kEps);
  }
}

TEST(TimeGrid, NonUniformHasTheSameBitsOnAnyRanks) {
  for (const std::int64_t steps : {64, 103}) {
    const TimeGrid time = Uneven(0.4, steps);
    const Options options = {.max_levels = 3, .cfactors = {4}, .max_iterations = 3};
    Lorenz problem;
    Solver alone(problem, time, options, comm::Communicator::Self());
    Solver together(problem, time, options, comm::testing::World());
    EXPECT_EQ(alone.Solve().residual_norms, together.Solve().residual_norms);
    for (std::int64_t j = together.first_point(); together.owns_points() && j <= together.last_point(); ++j) {
      EXPECT_EQ(together.state<Vector3>(j), alone.state<Vector3>(j)) << "point " << j;
    }
  }
}

}  // namespace
}  // namespace plait::mgrit
