// Delta correction: histories of XBraid, the directness of a linear solve, tangents, ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/testing/world.h"
#include "mgrit/examples/lorenz_problem.h"
#include "mgrit/examples/serial_sweep.h"
#include "mgrit/solver.h"
#include "mgrit/testing/linear_problems.h"

namespace plait::mgrit {
namespace {

using examples::LorenzProblem;
using Vector3 = LorenzProblem::Vector;

constexpr double kEps = std::numeric_limits<double>::epsilon();

// The problem of XBraid's ex-07: forward Euler, with the initial condition as guess everywhere.
class OnTheAttractor : public LorenzProblem {
 public:
  OnTheAttractor() : LorenzProblem({.method = Method::kForwardEuler}) {}
  void Initialize(std::int64_t, double, Vector& u) override {
    u = {9.614521163788712, 17.519127090401067, 13.94230712158098};
  }
};
const TimeGrid kTime = {.start = 0, .stop = std::log(10.0) / 0.9 * 0.25, .steps = 256};

struct History {
  Options options;
  std::vector<double> norms;
};

// What ex-07 -tstop 0.25 -ntime 256 -cf 4 prints with -ml, -nu and -rank as here, on one rank. Three directions are
// all of them: quadratic convergence. (With fewer, XBraid's histories
// differ from the third residual on, for reasons not known: those are compared with a serial program below.)
std::vector<History> Histories() {
  return {
      {{.cfactors = {4}, .cf_sweeps = {0}, .delta_rank = 3},
       {1.5885136432127538e+01, 2.0759344899948085e+00, 1.8996218646978341e-02, 6.9152717200523377e-06,
        1.4331867960589110e-13}},
      {{.cfactors = {4}, .cf_sweeps = {1}, .delta_rank = 3},
       {1.6939803895418340e+01, 2.0692965519293818e+00, 1.0415716914760594e-02, 1.8883998828868920e-06,
        3.6133932731409048e-14}},
      {{.cfactors = {4}, .cf_sweeps = {0}, .delta_rank = 0},
       {1.5885136432127538e+01, 1.1703054291453048e+00, 2.1520924546706721e-01, 2.8445574468237464e-02,
        1.8183530635315661e-03, 8.5835001722319248e-05}},
      {{.max_levels = 3, .cfactors = {4}, .cf_sweeps = {0}, .delta_rank = 3},
       {1.5885136432127538e+01, 2.5231979180296161e+01, 6.7804187449118851e+00, 3.0762093516403590e+00,
        2.7151881808710354e-01, 1.1445034543077665e-04, 1.7379766874505637e-13}},
  };
}

TEST(Delta, HistoriesOfXBraidAreReproduced) {
  for (History history : Histories()) {
    SCOPED_TRACE(::testing::Message()
                 << "rank " << history.options.delta_rank << ", levels " << history.options.max_levels);
    history.options.max_iterations = static_cast<int>(history.norms.size());
    OnTheAttractor problem;
    Solver solver(problem, kTime, history.options, comm::testing::World());
    const Solution solution = solver.Solve();
    for (std::size_t k = 0; k < history.norms.size(); ++k) {
      // 64 points of size 40, each a sum of four steps; a change of one rounding grows over the time by 10 or so.
      EXPECT_NEAR(solution.residual_norms[k], history.norms[k], 1e-8 * history.norms[k] + 64 * 40 * kEps)
          << k;
    }
  }
}

using Matrix = std::array<Vector3, 3>;

// u and its tangents over one step of forward Euler, from the equations.
void Advance(double dt, Vector3& u, std::vector<Vector3>& tangents) {
  const Matrix jacobian = {Vector3{-10, 10, 0}, {28 - u[2], -1, -u[0]}, {u[1], u[0], -8.0 / 3}};
  for (Vector3& w : tangents) {
    const Vector3 before = w;
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) w[i] += dt * jacobian[i][j] * before[j];
    }
  }
  const Vector3 slope = {10 * (u[1] - u[0]), u[0] * (28 - u[2]) - u[1], u[0] * u[1] - 8.0 / 3 * u[2]};
  for (int i = 0; i < 3; ++i) u[i] += dt * slope[i];
}

double Inner(const Vector3& x, const Vector3& y) { return x[0] * y[0] + x[1] * y[1] + x[2] * y[2]; }

// The C-points of two levels with F-relaxation and the first `rank` unit vectors.
class SerialDelta {
 public:
  SerialDelta(std::size_t intervals, std::size_t rank) : u_(intervals + 1), w_(intervals + 1) {
    OnTheAttractor().Initialize(0, 0, u_[0]);
    std::fill(u_.begin(), u_.end(), u_[0]);
    for (auto& w : w_) {
      for (std::size_t j = 0; j < rank; ++j)
        w.push_back({j == 0 ? 1.0 : 0.0, j == 1 ? 1.0 : 0.0, j == 2 ? 1.0 : 0.0});
    }
  }
  double Iterate(double dt, int factor) {
    const std::vector<Vector3> v = u_;
    const auto w = w_;
    double squares = 0;
    for (std::size_t k = 1; k < v.size(); ++k) {
      Vector3 fine = v[k - 1], coarse_v = v[k - 1], coarse_u = u_[k - 1];
      auto fine_w = w[k - 1], coarse_w = w[k - 1];
      for (int i = 0; i < factor; ++i) Advance(dt, fine, fine_w);
      Advance(dt * factor, coarse_v, coarse_w);
      std::vector<Vector3> none;
      Advance(dt * factor, coarse_u, none);
      for (int i = 0; i < 3; ++i) {
        squares += (fine[i] - v[k][i]) * (fine[i] - v[k][i]);
        u_[k][i] = coarse_u[i] + fine[i] - coarse_v[i];
      }
      for (std::size_t j = 0; j < fine_w.size(); ++j) {
        Vector3 change = u_[k - 1];
        for (int i = 0; i < 3; ++i) change[i] -= v[k - 1][i];
        const double part = Inner(w[k - 1][j], change);
        for (int i = 0; i < 3; ++i) u_[k][i] += part * (fine_w[j][i] - coarse_w[j][i]);
        for (std::size_t l = 0; l < j; ++l) {
          const double along = Inner(w_[k][l], fine_w[j]);
          for (int i = 0; i < 3; ++i) fine_w[j][i] -= along * w_[k][l][i];
        }
        const double norm = std::sqrt(Inner(fine_w[j], fine_w[j]));
        for (int i = 0; i < 3; ++i) w_[k][j][i] = fine_w[j][i] / norm;
      }
    }
    return std::sqrt(squares);
  }
  const Vector3& point(std::size_t k) const { return u_[k]; }

 private:
  std::vector<Vector3> u_;
  std::vector<std::vector<Vector3>> w_;
};

TEST(Delta, OfAnyRankIsTheSerialProgram) {
  for (const int rank : {1, 2, 3}) {
    SerialDelta serial(64, static_cast<std::size_t>(rank));
    for (int iterations = 1; iterations <= 6; ++iterations) {
      const double norm = serial.Iterate(kTime.stop / 256, 4);
      OnTheAttractor problem;
      Solver solver(problem, kTime,
                    {.cfactors = {4}, .cf_sweeps = {0}, .delta_rank = rank, .max_iterations = iterations},
                    comm::testing::World());
      const Solution solution = solver.Solve();
      const double tolerance = 64 * 40 * 100 * kEps;
      EXPECT_NEAR(solution.last_residual_norm(), norm, tolerance) << "rank " << rank;
      for (std::int64_t i = solver.first_point(); solver.owns_points() && i <= solver.last_point(); ++i) {
        if (i % 4 != 0) continue;
        for (int j = 0; j < 3; ++j) {
          EXPECT_NEAR(solver.state<Vector3>(i)[j], serial.point(static_cast<std::size_t>(i / 4))[j],
                      tolerance)
              << "point " << i << " rank " << rank << " iteration " << iterations;
        }
      }
    }
  }
}

// Tangents of an affine step are its matrix.
class Linear : public testing::RandomLinearSystem {
 public:
  Linear() : RandomLinearSystem(3, 1.5, 8) {}
  void StepTangent(const StepInterval& s, const Vector&, const Vector& w, Vector& out) override {
    Vector zero(3, 0.0), offset(3);
    Step(s, zero, offset);
    Step(s, w, out);
    for (int j = 0; j < 3; ++j) out[j] -= offset[j];
  }
  void InitializeDirection(int index, Vector& w) override {
    w = {1, 2, 3};  // a basis that is not orthonormal
    w[index] += 5;
  }
};

// With all directions, the corrected coarse step equals the fine steps: one iteration on two levels, and on three. The
// uncorrected coarse steps are unrelated to the fine ones (without the correction, the residual of the second iteration
// is not small).
TEST(Delta, OneIterationSolvesALinearProblem) {
  for (const std::int64_t steps : {48, 59}) {
    for (const int levels : {2, 3}) {
      const TimeGrid time = {0, 1, steps};
      Options options = {.max_levels = levels, .cfactors = {4}, .cf_sweeps = {0}, .max_iterations = 2};
      Linear problem;
      const auto expected = examples::SerialSweep<std::vector<double>>(problem, time, steps);
      Solver plain(problem, time, options, comm::testing::World());
      const Solution without = plain.Solve();
      options.delta_rank = 3;
      Solver solver(problem, time, options, comm::testing::World());
      const Solution solution = solver.Solve();
      // States of size 3, steps of norm 1.5 in rows of 3, a few roundings each.
      const double tolerance = 200 * static_cast<double>(steps) * kEps;
      EXPECT_GT(without.residual_norms[1], 1e-2);
      EXPECT_LT(solution.residual_norms[1], tolerance);
      options.max_iterations = 1;
      Solver once(problem, time, options, comm::testing::World());
      once.Solve();
      once.Visit([&](std::int64_t point, const State& u) {
        for (int j = 0; j < 3; ++j) {
          EXPECT_NEAR(Value<std::vector<double>>(u)[j], expected[static_cast<std::size_t>(point)][j],
                      tolerance)
              << point;
        }
      });
    }
  }
}

TEST(Delta, SameBitsOnAnyRanks) {
  std::vector<Options> all = {{.max_levels = 2, .cfactors = {4}},
                              {.max_levels = 3, .cfactors = {4, 3}, .cf_sweeps = {0}},
                              {.max_levels = 3, .cfactors = {3}, .c_weights = {0.9}, .cycle = Cycle::kW},
                              {.max_levels = 4, .cfactors = {3}, .fmg = true, .skip_downcycle = true},
                              {.max_levels = 2, .cfactors = {6}, .coarse_window = 3}};
  for (Options options : all) {
    for (const int rank : {1, 2, 3}) {
      for (const std::int64_t steps : {96, 103}) {
        options.delta_rank = rank;
        options.max_iterations = 4;
        const TimeGrid time = {.start = 0, .stop = 0.3, .steps = steps};
        OnTheAttractor problem;
        Solver alone(problem, time, options, comm::Communicator::Self());
        Solver together(problem, time, options, comm::testing::World());
        for (int solve = 0; solve < 2; ++solve) {
          const Solution expected = alone.Solve(), actual = together.Solve();
          for (std::size_t k = options.skip_downcycle ? 1 : 0; k < 4; ++k) {
            EXPECT_TRUE(std::isfinite(expected.residual_norms[k]));
            EXPECT_EQ(actual.residual_norms[k], expected.residual_norms[k]);
          }
          for (std::int64_t j = together.first_point(); together.owns_points() && j <= together.last_point();
               ++j) {
            EXPECT_EQ(together.state<Vector3>(j), alone.state<Vector3>(j)) << "point " << j;
          }
        }
      }
    }
  }
}

// Batched steps give the same bits.
TEST(Delta, OfStepsTakenTogether) {
  class Many : public OnTheAttractor {
   public:
    bool PrefersMany() const override { return true; }
  };
  const Options options = {
      .max_levels = 3, .cfactors = {4}, .cf_sweeps = {0}, .delta_rank = 2, .max_iterations = 3};
  OnTheAttractor one;
  Many many;
  Solver expected(one, kTime, options, comm::testing::World()),
      actual(many, kTime, options, comm::testing::World());
  EXPECT_EQ(expected.Solve().residual_norms, actual.Solve().residual_norms);
}

// <d Phi w, l> = <w, d Phi^T l>, and central differences.
TEST(Lorenz, TangentsAreThoseOfTheStep) {
  for (const auto method : {LorenzProblem::Method::kRungeKutta4, LorenzProblem::Method::kForwardEuler}) {
    LorenzProblem problem({.method = method});
    const StepInterval s = {.t_start = 0, .t_stop = 0.02};
    const Vector3 u = {9.6, 17.5, 13.9}, w = {0.3, -0.8, 0.5}, lambda = {-0.2, 0.9, 0.4};
    Vector3 tangent, adjoint, more = u, less = u, high, low;
    problem.StepTangent(s, u, w, tangent);
    problem.StepAdjoint(s, u, lambda, adjoint);
    EXPECT_NEAR(StateOperations<Vector3>::Dot(tangent, lambda), StateOperations<Vector3>::Dot(w, adjoint),
                100 * kEps);
    const double h = std::cbrt(kEps);
    StateOperations<Vector3>::Combine(h, w, 1.0, more);
    StateOperations<Vector3>::Combine(-h, w, 1.0, less);
    problem.Step(s, more, high);
    problem.Step(s, less, low);
    // Truncation h^2 times third derivatives of a step, rounding of states of 20 over h.
    for (int j = 0; j < 3; ++j) EXPECT_NEAR(tangent[j], (high[j] - low[j]) / (2 * h), 10 * h * h);
  }
}

}  // namespace
}  // namespace plait::mgrit
