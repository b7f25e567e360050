// Cycles of several levels against full approximation storage as textbooks have it (Brandt, "Multi-level
// adaptive solutions to boundary-value problems", Math. Comp. 31, 1977, section 5.3; Trottenberg, Oosterlee
// and Schueller, "Multigrid", 2001, section 5.3.4) with every matrix written out: on level l all points are
// one vector U, the equations are A_l(U) = f_l with A_l(U)_0 = u_0 and A_l(U)_i = u_i - Phi_i(u_{i-1}), and
// what relaxation keeps of them is solved by Newton's method with Gaussian elimination. The iterates of both
// are compared, after every iteration, in all points.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/nan_is_infinite.h"
#include "comm/communicator.h"
#include "mgrit/solver.h"

namespace plait::mgrit {
namespace {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

Vector Times(const Matrix& a, const Vector& x) {
  Vector y(a.size(), 0.0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < x.size(); ++j) y[i] += a[i][j] * x[j];
  }
  return y;
}

// Gaussian elimination with partial pivoting.
Vector SolveLinear(Matrix a, Vector b) {
  const std::size_t n = b.size();
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < n; ++i) pivot = std::abs(a[i][k]) > std::abs(a[pivot][k]) ? i : pivot;
    std::swap(a[k], a[pivot]);
    std::swap(b[k], b[pivot]);
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = a[i][k] / a[k][k];
      if (factor == 0) continue;
      for (std::size_t j = k; j < n; ++j) a[i][j] -= factor * a[k][j];
      b[i] -= factor * b[k];
    }
  }
  for (std::size_t k = n; k-- > 0;) {
    for (std::size_t j = k + 1; j < n; ++j) b[k] -= a[k][j] * b[j];
    b[k] /= a[k][k];
  }
  return b;
}

double Largest(const Vector& x) {
  double largest = 0;
  for (const double value : x) largest = std::max(largest, std::abs(value));
  return largest;
}

// u <- u + dt f(t, u), the same on every level but for dt.
struct Model {
  std::string name;
  std::function<Vector(double t, const Vector& u)> slope;
  std::function<Matrix(double t, const Vector& u)> jacobian;
  std::size_t dimension = 2;
  // From level 0 to level 1, if space is coarsened: there, `slope` gets shorter vectors.
  Matrix restriction = {};
  Matrix interpolation = {};

  bool coarsens() const { return !restriction.empty(); }
  std::size_t dimension_of(int level) const {
    return level > 0 && coarsens() ? restriction.size() : dimension;
  }
  Vector Guess(std::int64_t point) const {
    Vector u(dimension);
    for (std::size_t i = 0; i < dimension; ++i) {
      u[i] = std::cos(1.7 * static_cast<double>(point) + static_cast<double>(i));
    }
    return u;
  }
};

class ModelProblem : public Problem<Vector> {
 public:
  explicit ModelProblem(const Model& model) : model_(model) {}

  Vector Make(int level) override { return Vector(model_.dimension_of(level)); }
  void Initialize(std::int64_t point, double, Vector& u) override { u = model_.Guess(point); }
  void Step(const StepInterval& s, const Vector& u, Vector& out) override {
    const Vector slope = model_.slope(s.t_start, u);
    for (std::size_t i = 0; i < u.size(); ++i) out[i] = u[i] + s.dt() * slope[i];
  }
  bool CoarsensSpace() const override { return model_.coarsens(); }
  void Restrict(int fine_level, const Vector& fine, Vector& coarse) override {
    coarse = fine_level == 0 ? Times(model_.restriction, fine) : fine;
  }
  void Interpolate(int fine_level, const Vector& coarse, Vector& fine) override {
    fine = fine_level == 0 ? Times(model_.interpolation, coarse) : coarse;
  }

 private:
  const Model& model_;
};

// All points of one level.
struct DenseLevel {
  std::size_t points = 0, factor = 0, dimension = 0;
  double dt = 0;
  Vector u = {}, f = {};
  Vector restricted = {};  // U before the level's cycles

  std::size_t unknowns() const { return points * dimension; }
  bool is_c_point(std::size_t point) const { return point % factor == 0; }
};

class DenseFas {
 public:
  DenseFas(const Model& model, const TimeGrid& time, const Options& options)
      : model_(model), time_(time), options_(options) {
    double stride = 1;
    std::size_t points = static_cast<std::size_t>(time.steps) + 1;
    for (int l = 0; l < options.max_levels; ++l) {
      const auto factor = static_cast<std::size_t>(AtLevel(options.cfactors, l));
      DenseLevel level{.points = points, .factor = factor, .dimension = model.dimension_of(l)};
      level.dt = (time.stop - time.start) / static_cast<double>(time.steps) * stride;
      level.u.assign(level.unknowns(), 0.0);
      level.f.assign(level.unknowns(), 0.0);
      levels_.push_back(std::move(level));
      points = (points - 1) / factor + 1;
      stride *= static_cast<double>(factor);
    }
    for (std::size_t point = 0; point < levels_[0].points; ++point) {
      Put(levels_[0].u, point, model.Guess(static_cast<std::int64_t>(point)));
    }
    Put(levels_[0].f, 0, model.Guess(0));
  }

  // One iteration, and the residual's norm in it.
  double Iterate(int iteration) {
    norm_ = std::numeric_limits<double>::quiet_NaN();
    const bool fmg = options_.fmg && (options_.fmg_iterations < 0 || iteration < options_.fmg_iterations);
    const Cycle cycle = fmg ? Cycle::kF : options_.cycle;
    iteration == 0 && options_.skip_downcycle ? NestedIteration(cycle) : RunCycle(0, cycle);
    return norm_;
  }

  Vector Solution() const { return levels_[0].u; }

 private:
  std::size_t coarsest() const { return levels_.size() - 1; }
  static Vector At(const DenseLevel& level, const Vector& all, std::size_t point) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(point * level.dimension);
    return {first, first + static_cast<std::ptrdiff_t>(level.dimension)};
  }
  static void Put(Vector& all, std::size_t point, const Vector& u) {
    std::copy(u.begin(), u.end(), all.begin() + static_cast<std::ptrdiff_t>(point * u.size()));
  }
  double TimeOf(const DenseLevel& level, std::size_t point) const {
    return time_.start + static_cast<double>(point) * level.dt;
  }

  // A(U)
  Vector Apply(const DenseLevel& level) const {
    Vector result = level.u;
    for (std::size_t i = 1; i < level.points; ++i) {
      const Vector before = At(level, level.u, i - 1), slope = model_.slope(TimeOf(level, i - 1), before);
      for (std::size_t j = 0; j < level.dimension; ++j) {
        result[i * level.dimension + j] -= before[j] + level.dt * slope[j];
      }
    }
    return result;
  }

  // A'(U)
  Matrix Derivative(const DenseLevel& level) const {
    const std::size_t d = level.dimension;
    Matrix a(level.unknowns(), Vector(level.unknowns(), 0.0));
    for (std::size_t k = 0; k < a.size(); ++k) a[k][k] = 1;
    for (std::size_t i = 1; i < level.points; ++i) {
      const Matrix j = model_.jacobian(TimeOf(level, i - 1), At(level, level.u, i - 1));
      for (std::size_t row = 0; row < d; ++row) {
        for (std::size_t column = 0; column < d; ++column) {
          a[i * d + row][(i - 1) * d + column] = -(row == column ? 1.0 : 0.0) - level.dt * j[row][column];
        }
      }
    }
    return a;
  }

  Vector Residual(const DenseLevel& level) const {
    Vector r = Apply(level);
    for (std::size_t k = 0; k < r.size(); ++k) r[k] = level.f[k] - r[k];
    return r;
  }

  // Solves the equations of the points that `takes` names for the unknowns there, the others fixed. A point's
  // equation has no unknown of a later one, so Newton's method ends after as many steps as there are points
  // in a row at most.
  void Solve(DenseLevel& level, const std::function<bool(std::size_t point)>& takes) const {
    std::vector<std::size_t> rows;
    for (std::size_t k = 0; k < level.unknowns(); ++k) {
      if (takes(k / level.dimension)) rows.push_back(k);
    }
    for (std::size_t step = 0; step < level.points && !rows.empty(); ++step) {
      const Vector residual = Residual(level);
      const Matrix derivative = Derivative(level);
      Matrix a(rows.size(), Vector(rows.size()));
      Vector r(rows.size());
      for (std::size_t i = 0; i < rows.size(); ++i) {
        r[i] = residual[rows[i]];
        for (std::size_t j = 0; j < rows.size(); ++j) a[i][j] = derivative[rows[i]][rows[j]];
      }
      const Vector change = SolveLinear(std::move(a), std::move(r));
      for (std::size_t i = 0; i < rows.size(); ++i) level.u[rows[i]] += change[i];
      if (Largest(change) <= 2 * std::numeric_limits<double>::epsilon() * Largest(level.u)) return;
    }
  }

  void RelaxFPoints(DenseLevel& level) const {
    Solve(level, [&](std::size_t point) { return !level.is_c_point(point); });
  }

  // Jacobi's method on the C-points.
  void RelaxCPoints(DenseLevel& level, double weight) const {
    const Vector residual = Residual(level);
    for (std::size_t k = level.dimension; k < level.unknowns(); ++k) {
      if (level.is_c_point(k / level.dimension)) level.u[k] += weight * residual[k];
    }
  }

  // Restricts a vector of level l to level l + 1.
  Vector Restricted(std::size_t l, const Vector& fine) const {
    const DenseLevel& coarse = levels_[l + 1];
    Vector result(coarse.unknowns());
    for (std::size_t point = 0; point < coarse.points; ++point) {
      const Vector u = At(levels_[l], fine, point * levels_[l].factor);
      Put(result, point, l == 0 && model_.coarsens() ? Times(model_.restriction, u) : u);
    }
    return result;
  }

  // U += P (U_c - R U) in the C-points; the F-points follow.
  void Correct(std::size_t l) {
    DenseLevel &level = levels_[l], &coarse = levels_[l + 1];
    for (std::size_t point = 1; point < coarse.points; ++point) {
      Vector error = At(coarse, coarse.u, point);
      const Vector before = At(coarse, coarse.restricted, point);
      for (std::size_t j = 0; j < error.size(); ++j) error[j] -= before[j];
      if (l == 0 && model_.coarsens()) error = Times(model_.interpolation, error);
      Vector u = At(level, level.u, point * level.factor);
      for (std::size_t j = 0; j < u.size(); ++j) u[j] += error[j];
      Put(level.u, point * level.factor, u);
    }
    RelaxFPoints(level);
  }

  void RunCycle(std::size_t l, Cycle cycle) {
    DenseLevel& level = levels_[l];
    if (l == coarsest()) return Solve(level, [](std::size_t) { return true; });
    RelaxFPoints(level);
    for (int sweep = 0; sweep < AtLevel(options_.cf_sweeps, static_cast<int>(l)); ++sweep) {
      RelaxCPoints(level, AtLevel(options_.c_weights, static_cast<int>(l)));
      RelaxFPoints(level);
    }
    const Vector residual = Residual(level);
    if (l == 0) {
      double squares = 0;
      for (const double r : residual) squares += r * r;
      norm_ = std::sqrt(squares);
    }
    DenseLevel& coarse = levels_[l + 1];
    coarse.u = coarse.restricted = Restricted(l, level.u);
    const Vector restricted_residual = Restricted(l, residual), applied = Apply(coarse);
    for (std::size_t k = 0; k < coarse.unknowns(); ++k) coarse.f[k] = applied[k] + restricted_residual[k];
    RunCycle(l + 1, cycle);
    if (cycle == Cycle::kW) RunCycle(l + 1, Cycle::kW);
    for (int v = 0; cycle == Cycle::kF && v < options_.fmg_v_cycles; ++v) RunCycle(l + 1, Cycle::kV);
    Correct(l);
  }

  // Coarse levels begin with the guess and the problem's own equations.
  void NestedIteration(Cycle cycle) {
    for (std::size_t l = 0; l < coarsest(); ++l) {
      DenseLevel& coarse = levels_[l + 1];
      coarse.u = coarse.restricted = Restricted(l, levels_[l].u);
      coarse.f = Restricted(l, levels_[l].f);
    }
    RunCycle(coarsest(), cycle);
    for (std::size_t l = coarsest(); l-- > 0;) {
      Correct(l);
      for (int v = 0; l > 0 && cycle == Cycle::kF && v < options_.fmg_v_cycles; ++v) RunCycle(l, Cycle::kV);
    }
  }

  const Model& model_;
  TimeGrid time_;
  Options options_;
  std::vector<DenseLevel> levels_;
  double norm_ = 0;
};

Model Linear() {
  const auto matrix = [](double t) { return Matrix{{-1, 0.5 * std::sin(t)}, {0.3, -0.5}}; };
  return {.name = "linear",
          .slope =
              [=](double t, const Vector& u) {
                const Vector au = Times(matrix(t), u);
                return Vector{au[0] + std::cos(t), au[1] + 1};
              },
          .jacobian = [=](double t, const Vector&) { return matrix(t); }};
}

Model Nonlinear() {
  return {.name = "nonlinear",
          .slope =
              [](double t, const Vector& u) {
                return Vector{-u[0] + std::sin(u[1]) + std::cos(3 * t),
                              0.5 * u[0] * u[0] - u[1] * (1 + u[0] * u[0])};
              },
          .jacobian =
              [](double, const Vector& u) {
                return Matrix{{-1, std::cos(u[1])}, {u[0] - 2 * u[0] * u[1], -(1 + u[0] * u[0])}};
              }};
}

// Four cells with exchange and a reaction of second order, two cells from level 1 on.
Model TwoGridsOfCells() {
  const auto exchange = [](std::size_t cells) { return cells == 4 ? 0.8 : 0.2; };
  return {.name = "space coarsened",
          .slope =
              [=](double t, const Vector& u) {
                Vector slope(u.size());
                for (std::size_t i = 0; i < u.size(); ++i) {
                  const double left = i > 0 ? u[i - 1] - u[i] : 0,
                               right = i + 1 < u.size() ? u[i + 1] - u[i] : 0;
                  slope[i] = exchange(u.size()) * (left + right) - 0.3 * u[i] * u[i] + std::cos(t);
                }
                return slope;
              },
          .jacobian =
              [=](double, const Vector& u) {
                Matrix j(u.size(), Vector(u.size(), 0.0));
                for (std::size_t i = 0; i < u.size(); ++i) {
                  j[i][i] = -0.6 * u[i];
                  for (const std::size_t k : {i - 1, i + 1}) {
                    if (k >= u.size()) continue;
                    j[i][k] = exchange(u.size());
                    j[i][i] -= exchange(u.size());
                  }
                }
                return j;
              },
          .dimension = 4,
          .restriction = {{0.5, 0.5, 0, 0}, {0, 0, 0.5, 0.5}},
          .interpolation = {{1, 0}, {0.75, 0.25}, {0.25, 0.75}, {0, 1}}};
}

constexpr int kIterations = 4;

// Steps are not expanding, or little over this short time, so errors add up: of a sweep over all points, two
// operations and a few roundings a step, 4 eps of the largest state each; an iteration has fewer than 8
// sweeps over the points of level 0 in visits of all levels. The solutions of the reference are as accurate,
// as triangular systems are solved with a small componentwise backward error.
double Tolerance(const TimeGrid& time, double largest) {
  return 2 * 4 * std::numeric_limits<double>::epsilon() * static_cast<double>(time.steps) * 8 * kIterations *
         largest;
}

void ExpectSameIterates(const Model& model, const TimeGrid& time, Options options) {
  DenseFas reference(model, time, options);
  std::vector<double> norms;
  for (int iterations = 1; iterations <= kIterations; ++iterations) {
    SCOPED_TRACE("after " + std::to_string(iterations) + " iterations");
    options.max_iterations = iterations;
    ModelProblem problem(model);
    Solver solver(problem, time, options, comm::Communicator::Self());
    const Solution solution = solver.Solve();
    norms.push_back(reference.Iterate(iterations - 1));
    const Vector expected = reference.Solution();
    const double tolerance = Tolerance(time, Largest(expected));
    double difference = 0;
    const auto compare = [&](std::int64_t point, const State& state) {
      const Vector& u = Value<Vector>(state);
      for (std::size_t j = 0; j < u.size(); ++j) {
        const double exact = expected[static_cast<std::size_t>(point) * model.dimension + j];
        difference = std::max(difference, base::NanIsInfinite(std::abs(u[j] - exact)));
      }
    };
    solver.Visit(compare);
    EXPECT_LE(difference, tolerance);
    ASSERT_EQ(solution.residual_norms.size(), norms.size());
    for (std::size_t k = 0; k < norms.size(); ++k) {
      if (k == 0 && options.skip_downcycle) continue;
      // Of two states in each point.
      EXPECT_NEAR(solution.residual_norms[k], norms[k],
                  2 * tolerance * std::sqrt(static_cast<double>(expected.size())));
      // Otherwise only the solution would be compared.
      if (k < 2) {
        EXPECT_GT(norms[k], 1e3 * tolerance);
      }
    }
  }
}

struct Method {
  std::string name;
  Options options;
};

std::vector<Method> Methods() {
  // 56 steps, factor 3: 18, 6, 2, with points after the last C-point; factors 2, 3, 3: 28, 9, 3.
  const Options four = {.max_levels = 4, .cfactors = {3}};
  Options unequal = {.max_levels = 4, .cfactors = {2, 3}, .cf_sweeps = {0, 2, 1}, .c_weights = {1, 0.7, 1.2}};
  std::vector<Method> methods;
  for (const auto& [name, cycle] :
       std::vector<std::pair<std::string, Cycle>>{{"V", Cycle::kV}, {"W", Cycle::kW}, {"F", Cycle::kF}}) {
    for (const bool skips : {false, true}) {
      const auto add = [&, name = name, cycle = cycle](const std::string& what, Options options) {
        options.cycle = cycle;
        options.skip_downcycle = skips;
        methods.push_back({name + (skips ? ", skipped down-cycle, " : ", ") + what, options});
      };
      Options f = four, two = four, f_below = four;
      f.cf_sweeps = {0};
      f_below.cf_sweeps = {1, 0};
      two.fmg_v_cycles = 2;
      two.c_weights = {1.3};
      add("F-relaxation", f);
      add("FCF-relaxation", four);
      add("F-relaxation below level 0", f_below);
      add("weighted, two V-cycles", two);
      add("unequal levels", unequal);
    }
  }
  Options first = four;
  first.fmg = true;
  first.fmg_iterations = 2;
  methods.push_back({"F, F, then V", first});
  return methods;
}

class DenseFasTest : public ::testing::TestWithParam<Method> {};

TEST_P(DenseFasTest, EveryIterateIsThatOfTheTextbook) {
  for (const Model& model : {Linear(), Nonlinear(), TwoGridsOfCells()}) {
    SCOPED_TRACE(model.name);
    Options options = GetParam().options;
    ExpectSameIterates(model, {.start = 0, .stop = 2, .steps = 56}, options);
    options.storage = Storage::kCPoints;
    for (const int levels : {1, 2, 4}) {
      SCOPED_TRACE(std::to_string(levels) + " levels of C-points alone");
      options.c_point_levels = levels;
      ExpectSameIterates(model, {.start = 0, .stop = 2, .steps = 56}, options);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, DenseFasTest, ::testing::ValuesIn(Methods()), [](const auto& info) {
  std::string name;
  for (const char c : info.param.name) {
    if (std::isalnum(static_cast<unsigned char>(c))) name += c;
  }
  return name;
});

}  // namespace
}  // namespace plait::mgrit
