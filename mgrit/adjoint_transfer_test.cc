// The adjoint of a problem that coarsens space, with restriction and interpolation that are not transposes of each
// other up to a factor: converged gradients against dense matrices, and one adjoint cycle against the transpose of one
// forward cycle.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/testing/world.h"
#include "mgrit/adjoint.h"
#include "mgrit/solver.h"

namespace plait::mgrit {
namespace {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

constexpr double kEps = std::numeric_limits<double>::epsilon();

Vector Times(const Matrix& a, const Vector& x) {
  Vector y(a.size(), 0.0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < x.size(); ++j) y[i] += a[i][j] * x[j];
  }
  return y;
}
Vector TransposeTimes(const Matrix& a, const Vector& x) {
  Vector y(a[0].size(), 0.0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < y.size(); ++j) y[j] += a[i][j] * x[i];
  }
  return y;
}
Matrix Times(const Matrix& a, const Matrix& b) {
  Matrix c(a.size(), Vector(b[0].size(), 0.0));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t k = 0; k < b.size(); ++k) {
      for (std::size_t j = 0; j < c[i].size(); ++j) c[i][j] += a[i][k] * b[k][j];
    }
  }
  return c;
}
Matrix Transposed(const Matrix& a) {
  Matrix t(a[0].size(), Vector(a.size()));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < t.size(); ++j) t[j][i] = a[i][j];
  }
  return t;
}
Matrix Identity(std::size_t n) {
  Matrix a(n, Vector(n, 0.0));
  for (std::size_t i = 0; i < n; ++i) a[i][i] = 1;
  return a;
}
double Largest(const Vector& x) {
  double largest = 0;
  for (const double value : x) largest = std::max(largest, std::fabs(value));
  return largest;
}

// Four cells that pass on more to the right than to the left; two from level 1 on.
const Matrix kRestriction = {{0.7, 0.3, 0, 0}, {0, 0.2, 0.2, 0.6}};
const Matrix kInterpolation = {{1, 0}, {0.75, 0.25}, {0.25, 0.75}, {0, 1}};

Matrix Exchange(std::size_t cells) {
  const double rate = cells == 4 ? 0.6 : 0.3;
  Matrix a(cells, Vector(cells, 0.0));
  for (std::size_t i = 0; i < cells; ++i) {
    a[i][i] = -1.5 * rate;
    if (i > 0) a[i][i - 1] = rate;
    if (i + 1 < cells) a[i][i + 1] = 0.4 * rate;
  }
  return a;
}

// u <- u + dt (A u - strength u^2), componentwise.
class Cells : public Problem<Vector> {
 public:
  Cells(double strength, bool hooks) : strength_(strength), hooks_(hooks) {}

  Vector Make(int level) override { return Vector(level == 0 ? 4 : 2); }
  void Initialize(std::int64_t point, double, Vector& u) override {
    for (std::size_t i = 0; i < u.size(); ++i)
      u[i] = point == 0 ? 1.0 - 0.3 * static_cast<double>(i) : guess_;
  }
  void Step(const StepInterval& s, const Vector& u, Vector& out) override {
    out = Times(Exchange(u.size()), u);
    for (std::size_t i = 0; i < u.size(); ++i) out[i] = u[i] + s.dt() * (out[i] - strength_ * u[i] * u[i]);
  }
  Matrix Jacobian(double dt, const Vector& u) const {
    Matrix j = Exchange(u.size());
    for (std::size_t i = 0; i < u.size(); ++i) {
      j[i][i] -= 2 * strength_ * u[i];
      for (double& entry : j[i]) entry *= dt;
      j[i][i] += 1;
    }
    return j;
  }
  void StepAdjoint(const StepInterval& s, const Vector& u, const Vector& lambda, Vector& out) override {
    out = TransposeTimes(Jacobian(s.dt(), u), lambda);
  }
  bool CoarsensSpace() const override { return true; }
  void Restrict(int fine_level, const Vector& fine, Vector& coarse) override {
    coarse = fine_level == 0 ? Times(kRestriction, fine) : fine;
  }
  void Interpolate(int fine_level, const Vector& coarse, Vector& fine) override {
    fine = fine_level == 0 ? Times(kInterpolation, coarse) : coarse;
  }
  void RestrictAdjoint(int fine_level, const Vector& fine, Vector& coarse) override {
    if (!hooks_) return Problem<Vector>::RestrictAdjoint(fine_level, fine, coarse);
    coarse = fine_level == 0 ? TransposeTimes(kInterpolation, fine) : fine;
  }
  void InterpolateAdjoint(int fine_level, const Vector& coarse, Vector& fine) override {
    fine = fine_level == 0 ? TransposeTimes(kRestriction, coarse) : coarse;
  }

 private:
  double strength_;
  bool hooks_;
  double guess_ = 0.1;
};

Vector GradientBySolves(Cells& problem, const TimeGrid& time, const Options& options,
                        const Vector& terminal) {
  const comm::Communicator world = comm::testing::World();
  const Partition partition = Partition::OfWholeIntervals(time.steps, world.size(), options);
  Solver forward(problem, time, options, world, partition);
  forward.Solve();
  AdjointProblem<Vector> adjoint(problem, time,
                                 [&](std::int64_t i) -> const Vector& { return forward.state<Vector>(i); });
  adjoint.set_terminal(terminal);
  Solver backward(adjoint, adjoint.time(), options, world, partition.Mirrored());
  backward.Solve();
  Vector gradient(terminal.size(), 0.0);
  if (backward.owns_points() && backward.last_point() == time.steps)
    gradient = backward.state<Vector>(time.steps);
  world.AllReduce(comm::BufferOf(absl::MakeSpan(gradient)));  // of one owner, zero elsewhere
  return gradient;
}

// The product of the transposed Jacobians, written out. (F-relaxation alone does not converge where space is
// coarsened, forward or adjoint: nothing treats what interpolation does not reach.)
TEST(AdjointTransfers, ConvergedGradientsAreThoseOfTheFineSteps) {
  const Vector terminal = {0.3, -1, 0.5, 0.8};
  for (const std::int64_t steps : {36, 41}) {
    for (const double strength : {0.0, 0.4}) {
      for (const int sweeps : {1, 2}) {
        Cells problem(strength, true);
        const TimeGrid time = {0, 2, steps};
        Vector u = {1, 0.7, 0.4, 0.1};
        std::vector<Matrix> jacobians;
        for (std::int64_t i = 0; i < steps; ++i) {
          const double dt = time.At(i + 1) - time.At(i);
          jacobians.push_back(problem.Jacobian(dt, u));
          Vector next = Times(Exchange(4), u);
          for (std::size_t c = 0; c < 4; ++c) next[c] = u[c] + dt * (next[c] - strength * u[c] * u[c]);
          u = next;
        }
        Vector expected = terminal;
        for (std::size_t i = jacobians.size(); i-- > 0;) expected = TransposeTimes(jacobians[i], expected);
        const Options options = {
            .max_levels = 3, .cfactors = {3}, .cf_sweeps = {sweeps}, .max_iterations = 16};
        Vector error = GradientBySolves(problem, time, options, terminal);
        for (std::size_t c = 0; c < 4; ++c) error[c] -= expected[c];
        // Jacobians' columns add up to 1 and less: rounding adds up, of some ten operations a step.
        EXPECT_LE(Largest(error), 16 * kEps * static_cast<double>(steps) * Largest(terminal))
            << steps << " steps, " << sweeps << " sweeps, strength " << strength;
      }
    }
  }
}

TEST(AdjointTransfersDeathTest, SpaceIsNotCoarsenedWithoutThem) {
  Cells problem(0, false);
  const auto solve = [&] {
    AdjointProblem<Vector> adjoint(problem, {0, 2, 12}, [](std::int64_t) -> const Vector& {
      static const Vector& u = *new Vector(4, 0.0);
      return u;
    });
    adjoint.set_terminal(Vector(4, 1.0));
    Solver(adjoint, adjoint.time(), {.cfactors = {3}}, comm::Communicator::Self()).Solve();
  };
  EXPECT_DEATH(solve(), "does not define RestrictAdjoint");
}

// A linear problem from zero, with a unit vector at one C-point as guess, which is then the error.
class WithGuess : public Problem<Vector> {
 public:
  WithGuess(Problem<Vector>& problem, std::int64_t point, std::size_t cell)
      : problem_(problem), point_(point), cell_(cell) {}
  Vector Make(int level) override { return problem_.Make(level); }
  void Initialize(std::int64_t point, double, Vector& u) override {
    std::fill(u.begin(), u.end(), 0.0);
    if (point == point_) u[cell_] = 1;
  }
  void Step(const StepInterval& s, const Vector& u, Vector& out) override { problem_.Step(s, u, out); }
  bool CoarsensSpace() const override { return true; }
  void Restrict(int level, const Vector& fine, Vector& coarse) override {
    problem_.Restrict(level, fine, coarse);
  }
  void Interpolate(int level, const Vector& coarse, Vector& fine) override {
    problem_.Interpolate(level, coarse, fine);
  }

 private:
  Problem<Vector>& problem_;
  std::int64_t point_;
  std::size_t cell_;
};

constexpr std::size_t kCells = 4, kIntervals = 5, kFactor = 3, kUnknowns = kCells * kIntervals;

// The error propagation matrix of one two-level iteration with F-relaxation, at the C-points 1, 2, ...
Matrix ErrorPropagation(Problem<Vector>& problem, const TimeGrid& time) {
  Matrix e(kUnknowns, Vector(kUnknowns));
  for (std::size_t column = 0; column < kUnknowns; ++column) {
    WithGuess guessed(problem, static_cast<std::int64_t>((column / kCells + 1) * kFactor), column % kCells);
    Solver solver(guessed, time, {.cfactors = {kFactor}, .cf_sweeps = {0}, .max_iterations = 1},
                  comm::Communicator::Self());
    solver.Solve();
    for (std::size_t row = 0; row < kUnknowns; ++row) {
      const auto point = static_cast<std::int64_t>((row / kCells + 1) * kFactor);
      e[row][column] = solver.state<Vector>(point)[row % kCells];
    }
  }
  return e;
}

// B of E = I - B A, where A has I in its diagonal blocks and -F below: A^{-1} has F^(i-j).
Matrix ApproximateInverse(const Matrix& e, const Matrix& f) {
  Matrix inverse(kUnknowns, Vector(kUnknowns, 0.0));
  for (std::size_t j = 0; j < kIntervals; ++j) {
    Matrix power = Identity(kCells);
    for (std::size_t i = j; i < kIntervals; ++i) {
      for (std::size_t r = 0; r < kCells; ++r) {
        for (std::size_t c = 0; c < kCells; ++c) inverse[i * kCells + r][j * kCells + c] = power[r][c];
      }
      power = Times(f, power);
    }
  }
  Matrix correction = Identity(kUnknowns);
  for (std::size_t i = 0; i < kUnknowns; ++i) {
    for (std::size_t j = 0; j < kUnknowns; ++j) correction[i][j] -= e[i][j];
  }
  return Times(correction, inverse);
}

// The adjoint counts C-points from the other end.
Matrix FromTheOtherEnd(const Matrix& b) {
  Matrix reversed = b;
  const auto mirrored = [](std::size_t k) { return (kIntervals - 1 - k / kCells) * kCells + k % kCells; };
  for (std::size_t i = 0; i < kUnknowns; ++i) {
    for (std::size_t j = 0; j < kUnknowns; ++j) reversed[i][j] = b[mirrored(i)][mirrored(j)];
  }
  return reversed;
}

TEST(AdjointTransfers, TheCycleOfTheAdjointIsTheTransposeOfTheCycle) {
  Cells problem(0, true);
  const TimeGrid time = {0, 1.5, static_cast<std::int64_t>(kIntervals * kFactor)};
  const Matrix step = problem.Jacobian(1.5 / (kIntervals * kFactor), Vector(kCells, 0.0));
  const Matrix f = Times(step, Times(step, step));
  const Vector zero(kCells, 0.0);
  AdjointProblem<Vector> adjoint(problem, time, [&](std::int64_t) -> const Vector& { return zero; });
  const Matrix b = ApproximateInverse(ErrorPropagation(problem, time), f);
  const Matrix b_adjoint = ApproximateInverse(ErrorPropagation(adjoint, adjoint.time()), Transposed(f));
  const Matrix expected = Transposed(FromTheOtherEnd(b));
  double largest = 0;
  for (std::size_t i = 0; i < kUnknowns; ++i) {
    for (std::size_t j = 0; j < kUnknowns; ++j) {
      EXPECT_NEAR(b_adjoint[i][j], expected[i][j], 64 * kUnknowns * kEps) << i << ", " << j;
      largest = std::max(largest, std::fabs(expected[i][j]));
    }
  }
  EXPECT_GT(largest, 0.5);
}

}  // namespace
}  // namespace plait::mgrit
