// Gradients through a solve equal those of the serial backward sweep, on any number of ranks.
#include "mgrit/adjoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/seed.h"
#include "comm/communicator.h"
#include "comm/testing/world.h"
#include "mgrit/examples/dahlquist_problem.h"
#include "mgrit/examples/heat_problem.h"
#include "mgrit/examples/lorenz_problem.h"
#include "mgrit/examples/serial_sweep.h"
#include "mgrit/solver.h"
#include "mgrit/testing/linear_problems.h"

namespace plait::mgrit {
namespace {

using examples::DahlquistProblem;
using examples::FineInterval;
using examples::HeatProblem;
using examples::LorenzProblem;
using examples::SerialSweep;
using Vector3 = LorenzProblem::Vector;

constexpr double kEps = std::numeric_limits<double>::epsilon();

template <typename S>
double Norm(const S& u) {
  return std::sqrt(StateOperations<S>::NormSquared(u));
}
template <typename S>
double Distance(const S& x, S y) {
  StateOperations<S>::Combine(-1.0, x, 1.0, y);
  return Norm(y);
}
double Dot(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

// The objective sum_i w_i . u_i over the points 1 ... N, with weights at every `every`-th point and at the
// end.
template <typename S>
struct Objective {
  std::vector<S> weights;  // by point
  std::int64_t every = 0;  // 0: at the end alone

  bool Sees(std::int64_t point) const { return every > 0 && point > 0 && point % every == 0; }
  const S* SourceAt(std::int64_t point) const {
    return Sees(point) ? &weights[static_cast<std::size_t>(point)] : nullptr;
  }
};

// The plain backward sweep: lambda_0, ..., lambda_N.
template <typename S>
std::vector<S> SerialAdjoint(Problem<S>& problem, const TimeGrid& time, const Objective<S>& objective) {
  const std::vector<S> states = SerialSweep(problem, time, time.steps);
  std::vector<S> lambda(states.size(), objective.weights.back());
  for (std::int64_t point = time.steps - 1; point >= 0; --point) {
    const auto i = static_cast<std::size_t>(point);
    problem.StepAdjoint(FineInterval(time, point), states[i], lambda[i + 1], lambda[i]);
    if (const S* source = objective.SourceAt(point))
      StateOperations<S>::Combine(1.0, *source, 1.0, lambda[i]);
  }
  return lambda;
}

// lambda at all points by forward and adjoint solves; points of other ranks are zero.
template <typename S>
std::vector<S> SolvedAdjoint(Problem<S>& problem, const TimeGrid& time, const Options& options,
                             const Objective<S>& objective, const comm::Communicator& ranks,
                             bool whole_intervals = true) {
  S zero = objective.weights.back();
  StateOperations<S>::Combine(0.0, zero, 0.0, zero);
  std::vector<S> lambda(static_cast<std::size_t>(time.steps + 1), zero);
  const Partition partition = whole_intervals ? Partition::OfWholeIntervals(time.steps, ranks.size(), options)
                                              : Partition::Even(time.steps, ranks.size(), options);
  Solver forward(problem, time, options, ranks, partition);
  forward.Solve();
  AdjointProblem<S> adjoint(problem, time, [&](std::int64_t i) -> const S& { return forward.state<S>(i); });
  adjoint.set_terminal(objective.weights.back());
  if (objective.every > 0) adjoint.set_source([&](std::int64_t i) { return objective.SourceAt(i); });
  Solver backward(adjoint, adjoint.time(), options, ranks, partition.Mirrored());
  backward.Solve();
  if (!backward.owns_points()) return lambda;
  for (std::int64_t j = backward.first_point(); j <= backward.last_point(); ++j) {
    lambda[static_cast<std::size_t>(time.steps - j)] = backward.state<S>(j);
  }
  return lambda;
}

std::vector<Vector3> RandomWeights(std::int64_t points) {
  base::RandomStream random(base::DeriveSeed(5, "weights"));
  std::vector<Vector3> weights(static_cast<std::size_t>(points));
  for (Vector3& weight : weights) {
    for (double& value : weight) value = 2 * random.Uniform() - 1;
  }
  return weights;
}

// Enough iterations for any of the settings below to converge to rounding.
Options Converged(int levels, int cfactor) {
  return {.max_levels = levels, .cfactors = {cfactor}, .max_iterations = 25};
}

TEST(Adjoint, OfDahlquistIsThePowerOfTheStep) {
  DahlquistProblem problem({.lambda = -1, .initial_guess = 0.3});
  const TimeGrid time = {.start = 0, .stop = 2, .steps = 60};
  const Objective<double> objective = {.weights = std::vector<double>(61, 1.0)};
  const auto lambda = SolvedAdjoint(problem, time, Converged(3, 4), objective, comm::Communicator::Self());
  EXPECT_NEAR(lambda[0], std::pow(1 + 2.0 / 60, -60), 60 * kEps);
}

TEST(Adjoint, OfLorenzEqualsTheSerialBackwardSweep) {
  LorenzProblem problem({});
  for (const std::int64_t steps : {64, 67}) {
    for (const std::int64_t every : {0, 1, 5}) {
      for (const int levels : {2, 3}) {
        const TimeGrid time = {.start = 0, .stop = 0.6, .steps = steps};
        const Objective<Vector3> objective = {.weights = RandomWeights(steps + 1), .every = every};
        const auto expected = SerialAdjoint<Vector3>(problem, time, objective);
        const auto actual = SolvedAdjoint<Vector3>(problem, time, Converged(levels, 4), objective,
                                                   comm::Communicator::Self());
        double scale = 0;
        for (const Vector3& lambda : expected) scale = std::max(scale, Norm(lambda));
        // Rounding of the forward states enters the Jacobians; both grow along the sweep as lambda itself
        // does.
        for (std::size_t i = 0; i < expected.size(); ++i) {
          EXPECT_LE(Distance(actual[i], expected[i]), 100 * kEps * static_cast<double>(steps) * scale)
              << "point " << i;
        }
      }
    }
  }
}

// The gradient with respect to the initial condition against central differences of the serial sweep.
TEST(Adjoint, OfLorenzIsTheGradient) {
  const TimeGrid time = {.start = 0, .stop = 0.6, .steps = 64};
  const Objective<Vector3> objective = {.weights = RandomWeights(65), .every = 8};
  const auto value = [&](const Vector3& u0) {
    LorenzProblem problem({.u0 = u0});
    const auto states = SerialSweep<Vector3>(problem, time, time.steps);
    double sum = 0;
    for (std::int64_t point = 1; point <= time.steps; ++point) {
      if (point < time.steps && !objective.Sees(point)) continue;
      for (int c = 0; c < 3; ++c) {
        sum += objective.weights[static_cast<std::size_t>(point)][c] *
               states[static_cast<std::size_t>(point)][c];
      }
    }
    return sum;
  };
  LorenzProblem problem({});
  const auto lambda =
      SolvedAdjoint<Vector3>(problem, time, Converged(2, 4), objective, comm::Communicator::Self());
  const double h = std::cbrt(kEps);
  for (int c = 0; c < 3; ++c) {
    Vector3 more = {1, 1, 1};
    Vector3 less = more;
    more[c] += h;
    less[c] -= h;
    const double expected = (value(more) - value(less)) / (2 * h);
    // Truncation h^2 times third derivatives, which over this time are some hundred times the first.
    EXPECT_NEAR(lambda[0][c], expected, 1000 * h * h * (1 + Norm(lambda[0]))) << "component " << c;
  }
}

// <J v, w> = <v, J^T w> for the whole solve of a linear problem, J the map from u_0 to u_N.
TEST(Adjoint, DotProductIdentityOfTheWholeSolve) {
  class FromState : public testing::RandomLinearSystem {
   public:
    explicit FromState(const Vector& u0) : RandomLinearSystem(4, 1.5, 9), u0_(u0) {}
    void Initialize(std::int64_t point, double t, Vector& u) override {
      RandomLinearSystem::Initialize(point, t, u);
      if (point == 0) u = u0_;
    }

   private:
    Vector u0_;
  };
  const TimeGrid time = {.start = 0, .stop = 1, .steps = 24};
  const Options options = {.max_levels = 2, .cfactors = {4}, .max_iterations = 6};
  const auto end_from = [&](const std::vector<double>& u0) {
    FromState problem(u0);
    Solver solver(problem, time, options, comm::Communicator::Self());
    solver.Solve();
    return solver.state<std::vector<double>>(time.steps);
  };
  const std::vector<double> v = {0.3, -0.8, 0.5, 1.0};
  const std::vector<double> w = {-0.2, 0.9, 0.4, 0.7};
  const std::vector<double> zero(4, 0.0);
  std::vector<double> jv = end_from(v);
  StateOperations<std::vector<double>>::Combine(-1.0, end_from(zero), 1.0, jv);  // Phi is affine
  FromState problem(v);
  const Objective<std::vector<double>> objective = {.weights = std::vector<std::vector<double>>(25, w)};
  const auto lambda =
      SolvedAdjoint<std::vector<double>>(problem, time, options, objective, comm::Communicator::Self());
  EXPECT_GT(Norm(jv), 0);
  // The affine parts, of size 1, round when their difference is taken, and the solve adds some ulp an
  // interval.
  EXPECT_NEAR(Dot(jv, w), Dot(v, lambda[0]), 8 * kEps * 24 * (Norm(v) + 2) * Norm(w));
}

// The heat equation without its forcing, which is its own adjoint.
class HomogeneousHeat : public examples::HeatProblem {
 public:
  HomogeneousHeat(const Parameters& parameters, Vector first)
      : HeatProblem(parameters), first_(std::move(first)) {}
  void Initialize(std::int64_t point, double, Vector& u) override {
    u.assign(u.size(), 0.0);
    if (point == 0) u = first_;
  }
  void Step(const StepInterval& interval, const Vector& u, Vector& out) override {
    StepAdjoint(interval, u, u, out);
  }

 private:
  Vector first_;
};

// Sets the values at both ends to 0: no step reads them and every step sets them to 0, but corrections by the
// transposed transfers do not.
std::vector<double> Inside(std::vector<double> u) {
  u.front() = u.back() = 0;
  return u;
}

// So the adjoint solve of the heat equation is the solve of a heat equation, space coarsened or not: the same
// norms and states, but for the rounding of dt at the other end of time.
TEST(Adjoint, OfHeatIsTheHeatEquationAlsoWithSpaceCoarsened) {
  for (const bool coarsened : {true, false}) {
    for (const std::int64_t steps : {64, 23}) {
      const HeatProblem::Parameters parameters = {.nx = 17, .spatial_coarsening = coarsened};
      const TimeGrid time = {.start = 0, .stop = 2, .steps = steps};
      const Options options = {.max_levels = 3, .cfactors = {3}, .max_iterations = 6};
      HeatProblem problem(parameters);
      const std::vector<double> terminal = problem.Exact(0.0);
      Solver forward(problem, time, options, comm::testing::World());
      forward.Solve();
      AdjointProblem<std::vector<double>> adjoint(problem, time,
                                                  [&](std::int64_t i) -> const std::vector<double>& {
                                                    return forward.state<std::vector<double>>(i);
                                                  });
      adjoint.set_terminal(terminal);
      const Partition partition = forward.grid().partition();
      Solver backward(adjoint, adjoint.time(), options, comm::testing::World(), partition.Mirrored());
      const Solution solved = backward.Solve();
      HomogeneousHeat heat(parameters, terminal);
      Solver expected(heat, time, options, comm::Communicator::Self());
      const Solution reference = expected.Solve();
      ASSERT_EQ(solved.residual_norms.size(), reference.residual_norms.size());
      // A relative change of dt by N eps changes a step by as much; norms cancel, so the bound is absolute.
      const double tolerance = 100 * static_cast<double>(steps) * kEps * Norm(terminal);
      for (std::size_t k = 0; k < reference.residual_norms.size(); ++k) {
        EXPECT_NEAR(solved.residual_norms[k], reference.residual_norms[k], tolerance) << "iteration " << k;
      }
      if (!backward.owns_points()) continue;
      for (std::int64_t j = backward.first_point(); j <= backward.last_point(); ++j) {
        EXPECT_LE(Distance(Inside(backward.state<std::vector<double>>(j)),
                           Inside(expected.state<std::vector<double>>(j))),
                  tolerance)
            << "point " << j;
      }
    }
  }
}

// An interval that an adjoint step transposes has the forward level's index, or none where the forward
// level has no such interval; its ends are right in any case.
class IntervalsSeen : public DahlquistProblem {
 public:
  IntervalsSeen() : DahlquistProblem({.lambda = -1, .initial_guess = 0.3}) {}
  void StepAdjoint(const StepInterval& interval, const double& u, const double& lambda,
                   double& out) override {
    seen.push_back(interval);
    DahlquistProblem::StepAdjoint(interval, u, lambda, out);
  }
  std::vector<StepInterval> seen;
};

TEST(Adjoint, IntervalsAreThoseOfTheForwardLevelOrHaveNoIndex) {
  for (const std::int64_t steps : {23, 27}) {
    IntervalsSeen problem;
    const TimeGrid time = {.start = 0, .stop = 2, .steps = steps};
    const Objective<double> objective = {.weights = std::vector<double>(steps + 1, 1.0)};
    SolvedAdjoint<double>(problem, time, Converged(3, 3), objective, comm::Communicator::Self());
    const std::int64_t strides[] = {1, 3, 9};
    for (const StepInterval& interval : problem.seen) {
      const std::int64_t stride = strides[interval.level];
      EXPECT_EQ(interval.fine_stop - interval.fine_start, stride);
      EXPECT_EQ(interval.index,
                interval.fine_start % stride == 0 ? interval.fine_start / stride : StepInterval::kNoIndex)
          << "level " << interval.level << " from " << interval.fine_start << " of " << steps;
    }
  }
}

// A problem with PrefersMany gets batches of adjoint steps, with the same results.
class ManyAtATime : public testing::RandomLinearSystem {
 public:
  explicit ManyAtATime(bool many) : RandomLinearSystem(3, 1.2, 4), many_(many) {}
  bool PrefersMany() const override { return many_; }
  void StepAdjointMany(absl::Span<const AdjointTask<Vector>> tasks) override {
    largest = std::max(largest, tasks.size());
    RandomLinearSystem::StepAdjointMany(tasks);
  }
  std::size_t largest = 0;

 private:
  bool many_;
};

TEST(Adjoint, TakesManyStepsAtATimeIfTheProblemPrefersThat) {
  const TimeGrid time = {.start = 0, .stop = 1, .steps = 67};
  const Objective<std::vector<double>> objective = {
      .weights = std::vector<std::vector<double>>(68, {0.3, -0.8, 0.5}), .every = 4};
  Options options = Converged(3, 4);
  options.max_iterations = 3;
  ManyAtATime one(false), many(true);
  const auto expected =
      SolvedAdjoint<std::vector<double>>(one, time, options, objective, comm::Communicator::Self());
  EXPECT_EQ(SolvedAdjoint<std::vector<double>>(many, time, options, objective, comm::Communicator::Self()),
            expected);
  EXPECT_EQ(one.largest, 0u);
  EXPECT_EQ(many.largest, 16u);  // one step of each whole C-interval
}

TEST(Adjoint, SameBitsOnAnyRanks) {
  LorenzProblem problem({});
  for (const std::int64_t steps : {64, 67, 9}) {
    for (const bool whole_intervals : {true, false}) {
      const std::int64_t every = whole_intervals ? 3 : 0;
      const TimeGrid time = {.start = 0, .stop = 0.6, .steps = steps};
      const Objective<Vector3> objective = {.weights = RandomWeights(steps + 1), .every = every};
      Options options = Converged(2, 4);
      options.max_iterations = 2;
      const auto alone =
          SolvedAdjoint<Vector3>(problem, time, options, objective, comm::Communicator::Self());
      const auto together =
          SolvedAdjoint<Vector3>(problem, time, options, objective, comm::testing::World(), whole_intervals);
      // Points are owned by one rank; the ghosts are copies.
      std::vector<std::int64_t> wrong_and_seen(2, 0);
      for (std::size_t i = 0; i < alone.size(); ++i) {
        if (Norm(together[i]) == 0) continue;
        ++wrong_and_seen[1];
        if (std::memcmp(alone[i].data(), together[i].data(), sizeof(Vector3)) != 0) ++wrong_and_seen[0];
      }
      comm::testing::World().AllReduce(comm::BufferOf(absl::MakeSpan(wrong_and_seen)));
      EXPECT_EQ(wrong_and_seen[0], 0) << steps << " steps, sources every " << every;
      EXPECT_GE(wrong_and_seen[1], steps + 1);
    }
  }
}

}  // namespace
}  // namespace plait::mgrit
