#include "mgrit/testing/problem_conformance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/seed.h"
#include "mgrit/examples/dahlquist_bdf2_problem.h"
#include "mgrit/examples/dahlquist_problem.h"
#include "mgrit/examples/heat_problem.h"
#include "mgrit/examples/lorenz_problem.h"
#include "mgrit/examples/van_der_pol_problem.h"
#include "mgrit/testing/linear_problems.h"

namespace plait::mgrit::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <typename Range>
Range Random(Range range, std::uint64_t seed) {
  base::RandomStream random(base::DeriveSeed(seed, "conformance"));
  for (double& value : range) value = 2 * random.Uniform() - 1;
  return range;
}

TEST(Violations, DahlquistHasNone) {
  examples::DahlquistProblem problem({});
  EXPECT_THAT(
      Violations<double>(
          problem,
          {.time = {0, 5, 64},
           .random_state = [](int, std::uint64_t seed) { return Random(std::array<double, 1>{}, seed)[0]; },
           .adjoint = AdjointCheck::kAffine}),
      IsEmpty());
}

TEST(Violations, DahlquistByBdf2HasNone) {
  examples::DahlquistBdf2Problem problem({.gap = 0.05});
  EXPECT_THAT((Violations<std::array<double, 2>>(
                  problem, {.time = {0, 6.4, 64},
                            .random_state =
                                [](int, std::uint64_t seed) { return Random(std::array<double, 2>{}, seed); },
                            .adjoint = AdjointCheck::kAffine})),
              IsEmpty());
}

TEST(Violations, VanDerPolHasNone) {
  examples::VanDerPolProblem problem({});
  EXPECT_THAT((Violations<std::array<double, 2>>(
                  problem, {.time = {0, 1, 64},
                            .random_state =
                                [](int, std::uint64_t seed) { return Random(std::array<double, 2>{}, seed); },
                            .adjoint = AdjointCheck::kFiniteDifferences})),
              IsEmpty());
}

TEST(Violations, HeatHasNone) {
  for (const bool coarsens : {false, true}) {
    examples::HeatProblem problem({.nx = 33, .spatial_coarsening = coarsens});
    EXPECT_THAT(
        Violations<std::vector<double>>(
            problem,
            {.time = {0, 6, 64},
             .random_state = [&](int level, std::uint64_t seed) { return Random(problem.Make(level), seed); },
             .levels = 4,
             .adjoint = AdjointCheck::kAffine}),
        IsEmpty());
  }
}

TEST(Violations, LorenzHasNone) {
  using Method = examples::LorenzProblem::Method;
  for (const Method method : {Method::kRungeKutta4, Method::kForwardEuler}) {
    examples::LorenzProblem problem({.method = method});
    EXPECT_THAT(
        (Violations<std::array<double, 3>>(
            problem,
            {.time = {0, 2, 128},
             .random_state = [](int, std::uint64_t seed) { return Random(std::array<double, 3>{}, seed); },
             .levels = 3,
             .adjoint = AdjointCheck::kFiniteDifferences})),
        IsEmpty());
  }
}

TEST(Violations, RandomLinearSystemsHaveNone) {
  RandomLinearSystem problem(5, 2.0, 3);
  EXPECT_THAT(
      Violations<std::vector<double>>(
          problem,
          {.time = {0, 1, 64},
           .random_state = [&](int level, std::uint64_t seed) { return Random(problem.Make(level), seed); },
           .adjoint = AdjointCheck::kAffine}),
      IsEmpty());
}

// A state whose operations can be broken, one at a time.
enum class Fault {
  kNone,
  kShallowCopy,
  kCombineForgetsBeta,
  kNormForgetsLast,
  kNormNotSquared,
  kPackForgetsLast,
  kPackWritesMore,
  kUnpackSwaps,
  kStepReadsOut,
  kStepChangesU,
  kStepRemembers,
  kStepManyDiffers,
  kAdjointForgetsTranspose,
  kRestrictNotLinear,
  kInterpolateNotLinear,
  kRestrictAdjointScales,
  kInterpolateAdjointScales
};
Fault& CurrentFault() {
  static Fault fault = Fault::kNone;
  return fault;
}
bool Has(Fault fault) { return CurrentFault() == fault; }

struct Pair {
  std::shared_ptr<std::array<double, 2>> values = std::make_shared<std::array<double, 2>>();
  double& operator[](int i) { return (*values)[i]; }
  double operator[](int i) const { return (*values)[i]; }
};

}  // namespace
}  // namespace plait::mgrit::testing

namespace plait::mgrit {

template <>
struct StateOperations<testing::Pair> {
  using Pair = testing::Pair;
  static bool Has(testing::Fault fault) { return testing::Has(fault); }

  static void Copy(const Pair& x, Pair& y) {
    if (Has(testing::Fault::kShallowCopy)) {
      y.values = x.values;
    } else {
      y.values = std::make_shared<std::array<double, 2>>(*x.values);
    }
  }
  static void Combine(double alpha, const Pair& x, double beta, Pair& y) {
    if (Has(testing::Fault::kCombineForgetsBeta)) beta = 1;
    for (int i : {0, 1}) y[i] = alpha * x[i] + beta * y[i];
  }
  static double NormSquared(const Pair& x) {
    if (Has(testing::Fault::kNormForgetsLast)) return x[0] * x[0] - x[1] * x[1];
    const double squared = x[0] * x[0] + x[1] * x[1];
    return Has(testing::Fault::kNormNotSquared) ? std::sqrt(squared) : squared;
  }
  static std::int64_t PackedBytes(const Pair&) { return 2 * sizeof(double); }
  static void Pack(const Pair& x, absl::Span<std::byte> bytes) {
    const bool last = !Has(testing::Fault::kPackForgetsLast);
    std::memset(bytes.data(), 0, 2 * sizeof(double));
    std::memcpy(bytes.data(), x.values->data(), (last ? 2 : 1) * sizeof(double));
    if (Has(testing::Fault::kPackWritesMore)) bytes.data()[2 * sizeof(double)] = std::byte{1};
  }
  static void Unpack(absl::Span<const std::byte> bytes, Pair& x) {
    x.values = std::make_shared<std::array<double, 2>>();
    std::memcpy(x.values->data(), bytes.data(), 2 * sizeof(double));
    if (Has(testing::Fault::kUnpackSwaps)) std::swap(x[0], x[1]);
  }
};

namespace testing {
namespace {

class FaultyProblem : public Problem<Pair> {
 public:
  void Initialize(std::int64_t, double, Pair& u) override { u = Pair(); }
  // A rotation, sheared: its transpose is another matrix.
  void Step(const StepInterval&, const Pair& u, Pair& out) override {
    ++steps_;
    const double before = out[0];
    const double result[] = {0.5 * u[0] + 0.7 * u[1],
                             -0.3 * u[0] + 0.4 * u[1] + (Has(Fault::kStepRemembers) ? steps_ : 0)};
    if (Has(Fault::kStepChangesU)) (*u.values)[0] += 1;
    out = Pair();
    out[0] = result[0] + (Has(Fault::kStepReadsOut) ? 1e-9 * before : 0);
    out[1] = result[1];
  }
  void StepMany(absl::Span<const StepTask> tasks) override {
    Problem<Pair>::StepMany(tasks);
    if (Has(Fault::kStepManyDiffers)) Value<Pair>(*tasks[1].out)[1] *= 1 + 1e-15;
  }
  void StepAdjoint(const StepInterval&, const Pair&, const Pair& lambda, Pair& out) override {
    const bool transposed = !Has(Fault::kAdjointForgetsTranspose);
    out = Pair();
    out[0] = 0.5 * lambda[0] + (transposed ? -0.3 : 0.7) * lambda[1];
    out[1] = (transposed ? 0.7 : -0.3) * lambda[0] + 0.4 * lambda[1];
  }
  bool CoarsensSpace() const override { return true; }
  void Restrict(int, const Pair& fine, Pair& coarse) override {
    StateOperations<Pair>::Copy(fine, coarse);
    if (Has(Fault::kRestrictNotLinear)) coarse[0] += 1e-3;
  }
  void Interpolate(int, const Pair& coarse, Pair& fine) override {
    StateOperations<Pair>::Copy(coarse, fine);
    if (Has(Fault::kInterpolateNotLinear)) fine[0] += fine[0] * fine[0];
  }
  void RestrictAdjoint(int, const Pair& fine, Pair& coarse) override {
    StateOperations<Pair>::Copy(fine, coarse);
    if (Has(Fault::kRestrictAdjointScales)) coarse[0] *= 2;
  }
  void InterpolateAdjoint(int, const Pair& coarse, Pair& fine) override {
    StateOperations<Pair>::Copy(coarse, fine);
    if (Has(Fault::kInterpolateAdjointScales)) fine[1] *= 2;
  }

 private:
  int steps_ = 0;
};

std::vector<std::string> ViolationsWith(Fault fault) {
  CurrentFault() = fault;
  FaultyProblem problem;
  const auto violations = Violations<Pair>(problem, {.time = {0, 1, 8},
                                                     .random_state =
                                                         [](int, std::uint64_t seed) {
                                                           Pair pair;
                                                           *pair.values = Random(*pair.values, seed);
                                                           return pair;
                                                         },
                                                     .adjoint = AdjointCheck::kAffine});
  CurrentFault() = Fault::kNone;
  return violations;
}

TEST(Violations, NameEveryFault) {
  EXPECT_THAT(ViolationsWith(Fault::kNone), IsEmpty());
  const std::vector<std::pair<Fault, std::string>> faults = {
      {Fault::kShallowCopy, "Copy: changing the copy"},
      {Fault::kCombineForgetsBeta, "Combine: 1 x + 0 y"},
      {Fault::kNormForgetsLast, "NormSquared"},
      {Fault::kNormNotSquared, "NormSquared: of 2 x"},
      {Fault::kPackForgetsLast, "Unpack: what was packed"},
      {Fault::kPackWritesMore, "Pack: writes more"},
      {Fault::kUnpackSwaps, "Unpack: what was packed"},
      {Fault::kStepReadsOut, "Step: the same u"},
      {Fault::kStepChangesU, "Step: changes u"},
      {Fault::kStepRemembers, "Step: the same u"},
      {Fault::kStepManyDiffers, "StepMany"},
      {Fault::kAdjointForgetsTranspose, "StepAdjoint"},
      {Fault::kRestrictNotLinear, "Restrict: is not linear"},
      {Fault::kInterpolateNotLinear, "Interpolate: is not linear"},
      {Fault::kRestrictAdjointScales, "RestrictAdjoint: <P^T x, y>"},
      {Fault::kInterpolateAdjointScales, "InterpolateAdjoint: <x, R^T y>"},
  };
  for (const auto& [fault, line] : faults) {
    EXPECT_THAT(ViolationsWith(fault), ::testing::Contains(HasSubstr(line))) << line;
  }
}

}  // namespace
}  // namespace testing
}  // namespace plait::mgrit
