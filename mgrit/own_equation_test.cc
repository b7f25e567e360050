// Equations of the problem's own, A(u_stop, u_start) = g: histories of XBraid, and a serial program.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "comm/communicator.h"
#include "comm/testing/world.h"
#include "mgrit/examples/dahlquist_problem.h"
#include "mgrit/examples/serial_sweep.h"
#include "mgrit/solver.h"

namespace plait::mgrit {
namespace {

constexpr double kEps = std::numeric_limits<double>::epsilon();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Backward Euler's (1 + dt) u_stop - u_start = g.
class Implicit : public examples::DahlquistProblem {
 public:
  Implicit() : DahlquistProblem({.lambda = -1, .u0 = 1, .initial_guess = 0.456}) {}
  bool HasEquation() const override { return true; }
  void EvaluateEquation(const StepInterval& s, const double& u_start, const double& u_stop,
                        double& out) override {
    ++evaluations;
    out = (1 + s.dt()) * u_stop - u_start;
  }
  void StepWithRightHandSide(const StepInterval& s, const double& u, const double& g, double& out) override {
    out = (u + g) / (1 + s.dt());
  }
  std::int64_t evaluations = 0;
};

struct History {
  Options options;
  std::vector<double> norms;
};

// What ex-01-expanded -ntime 64 -cf 4 -res prints with -ml and -nu as here. (Without -res, its residuals are those of
// steps: 2.8e-02, 9.1e-04, 3.1e-05 on two levels.)
std::vector<History> Histories() {
  return {
      {{.max_levels = 2, .cfactors = {4}, .skip_downcycle = true},
       {kNan, 4.2678598590134460e-02, 4.0520101632987790e-03, 3.9406564763465600e-04, 3.9130009629015846e-05,
        3.9524860844773511e-06, 4.0465641299813471e-07, 4.1861983294175323e-08, 4.3652227541429618e-09}},
      {{.max_levels = 3, .cfactors = {4}, .skip_downcycle = true},
       {kNan, 5.2908770258235857e-02, 4.9680087246232706e-03, 4.8184382453107127e-04, 4.7998656869349600e-05,
        4.8907697218516641e-06, 5.0607550546606367e-07, 5.2933381969404704e-08, 5.5608235797325300e-09}},
      {{.max_levels = 3, .cfactors = {4}, .cf_sweeps = {0}, .skip_downcycle = true},
       {kNan, 2.6785073457725861e-01, 1.6904787378238070e-01, 1.2281698528605056e-01, 9.6646064093952003e-02,
        7.8717717139632271e-02, 6.4996058133619763e-02}}};
}

TEST(OwnEquation, HistoriesOfXBraidAreReproduced) {
  for (History history : Histories()) {
    history.options.max_iterations = static_cast<int>(history.norms.size());
    Implicit problem;
    Solver solver(problem, {0, 32, 64}, history.options, comm::testing::World());
    const Solution solution = solver.Solve();
    for (std::size_t k = 1; k < history.norms.size(); ++k) {
      EXPECT_NEAR(solution.residual_norms[k], history.norms[k], 1e-8 * history.norms[k] + 16 * 4 * kEps) << k;
    }
  }
}

TEST(OwnEquation, ConvergesToTheSerialSweepOnAnyRanksWithTheSameBits) {
  std::vector<Options> all = {{.max_levels = 3, .cfactors = {4}, .cycle = Cycle::kW},
                              {.max_levels = 4, .cfactors = {3, 2}, .c_weights = {0.9}},
                              {.max_levels = 3, .cfactors = {4}, .fmg = true, .skip_downcycle = true},
                              {.max_levels = 2, .cfactors = {4}, .coarse_window = 100},
                              {.max_levels = 3, .cfactors = {4}, .residual_time = ResidualTime::kCycle}};
  all.push_back(all[0]);
  all.back().storage = Storage::kCPoints;
  all.back().c_point_levels = 2;
  for (Options options : all) {
    for (const std::int64_t steps : {64, 103}) {
      options.max_iterations = 40;
      const TimeGrid time = {0, 32, steps};
      Implicit problem;
      Solver together(problem, time, options, comm::testing::World());
      Solver alone(problem, time, options, comm::Communicator::Self());
      const Solution actual = together.Solve(), expected = alone.Solve();
      for (std::size_t k = 1; k < expected.residual_norms.size(); ++k) {
        EXPECT_EQ(actual.residual_norms[k], expected.residual_norms[k]);
      }
      const auto serial = examples::SerialSweep<double>(problem, time, steps);
      std::vector<double> points(static_cast<std::size_t>(steps + 1));
      alone.Visit([&](std::int64_t point, const State& u) {
        points[static_cast<std::size_t>(point)] = Value<double>(u);
      });
      together.Visit([&](std::int64_t point, const State& u) {
        EXPECT_EQ(Value<double>(u), points[static_cast<std::size_t>(point)]);
        EXPECT_NEAR(Value<double>(u), serial[static_cast<std::size_t>(point)], 64 * kEps) << point;
      });
    }
  }
}

// Two levels with F-relaxation, 64 steps by 4: C-points and coarse equations take evaluations of the equation in place
// of steps. A cycle has 15 * 3 F-steps (the first interval's are known), 16 residuals, 16 coarse equations and 16
// coarse steps.
TEST(OwnEquation, IsEvaluatedWhereAStepWouldBeTaken) {
  Implicit problem;
  Solver solver(problem, {0, 32, 64}, {.cfactors = {4}, .cf_sweeps = {0}, .max_iterations = 3},
                comm::testing::World());
  const Solution solution = solver.Solve();
  std::int64_t counts[] = {solution.work.steps[0], solution.work.steps[1], problem.evaluations};
  comm::testing::World().AllReduce(comm::BufferOf(absl::MakeSpan(counts)));
  EXPECT_EQ(counts[0], 48 + 3 * 45);
  EXPECT_EQ(counts[1], 3 * 16);
  EXPECT_EQ(counts[2], 3 * (16 + 16));
}

// PrefersMany makes no difference: steps with a right-hand side are taken one by one.
TEST(OwnEquation, IgnoresPrefersMany) {
  struct Many : Implicit {
    bool PrefersMany() const override { return true; }
  };
  Implicit one;
  Many many;
  const Options options = {.max_levels = 3, .cfactors = {4}, .max_iterations = 3};
  Solver expected(one, {0, 32, 64}, options, comm::testing::World());
  Solver actual(many, {0, 32, 64}, options, comm::testing::World());
  EXPECT_EQ(expected.Solve().residual_norms, actual.Solve().residual_norms);
}

}  // namespace
}  // namespace plait::mgrit
