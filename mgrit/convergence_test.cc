// Verdicts on sequences of norms, progress and norms over time against values computed by hand.
#include "mgrit/convergence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace plait::mgrit {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Returns the first verdict other than kGoOn when norms arrive one by one; `taken`: the number of norms until then.
Verdict VerdictOn(const Options& options, const std::vector<double>& norms, std::size_t* taken) {
  for (*taken = 1; *taken <= norms.size(); ++*taken) {
    const Verdict verdict = Judge(options, absl::MakeConstSpan(norms.data(), *taken));
    if (verdict != Verdict::kGoOn) return verdict;
  }
  return Verdict::kGoOn;
}

void ExpectVerdict(const Options& options, const std::vector<double>& norms, Verdict expected,
                   std::size_t expected_taken) {
  std::size_t taken = 0;
  EXPECT_EQ(VerdictOn(options, norms, &taken), expected);
  EXPECT_EQ(taken, expected_taken);
}

TEST(Judge, WithoutOptionsGoesOnWhileNormsAreFinite) {
  ExpectVerdict({}, {1, 5, 1e300, 0, 0, 0}, Verdict::kGoOn, 7);
  ExpectVerdict({}, {1, kInfinity}, Verdict::kDiverged, 2);
  ExpectVerdict({}, {kNan}, Verdict::kDiverged, 1);
}

TEST(Judge, NoToleranceMakesANormThatIsNotFiniteConverged) {
  for (const bool relative : {false, true}) {
    const Options options = {.tolerance = 1e300, .relative_tolerance = relative};
    ExpectVerdict(options, {kInfinity}, Verdict::kDiverged, 1);
    ExpectVerdict(options, {kNan}, Verdict::kDiverged, 1);
  }
}

TEST(Judge, DivergedIsAboveAMultipleOfTheFirstNorm) {
  const Options options = {.divergence_factor = 100};
  ExpectVerdict(options, {2, 1, 200, 201, 1}, Verdict::kDiverged, 4);
  // Growth from the smallest norm is none: at the level of rounding, norms move by any factor.
  ExpectVerdict(options, {2, 1e-16, 1e-10, 2}, Verdict::kGoOn, 5);
  ExpectVerdict(options, {0, 1e-17, 1e-16}, Verdict::kGoOn, 4);
}

TEST(Judge, StagnatedIsNoBetterThanBeforeTheLastIterations) {
  const Options options = {.stagnation_iterations = 3, .stagnation_factor = 0.5};
  ExpectVerdict(options, {8, 7, 6, 3.9, 3.4, 2.9, 2.8, 1}, Verdict::kStagnated, 7);
  // One good norm among the last three is enough.
  ExpectVerdict(options, {8, 9, 9, 3.9, 9, 9, 1.9, 9, 9, 0.9}, Verdict::kGoOn, 11);
  ExpectVerdict(options, {8, 3.9, 9, 9, 9}, Verdict::kStagnated, 5);
  ExpectVerdict(options, {0, 0, 0, 0, 0}, Verdict::kStagnated, 4);
  ExpectVerdict(options, {8, 7, 6}, Verdict::kGoOn, 4);  // too early to say
}

TEST(Judge, ConvergedGoesBeforeTheOthers) {
  const Options options = {.tolerance = 5, .divergence_factor = 2, .stagnation_iterations = 1};
  ExpectVerdict(options, {1}, Verdict::kConverged, 1);
  ExpectVerdict(options, {10, 21}, Verdict::kDiverged, 2);
  ExpectVerdict(options, {10, 10}, Verdict::kStagnated, 2);
}

// Of the way from 100 to the tolerance, on a logarithmic scale: 1e-8, or 1e-6 if it is relative.
TEST(ProgressOf, GoesToTheToleranceOrToThatFractionOfTheFirstNorm) {
  const std::vector<double> norms = {100, 1, 10};
  EXPECT_NEAR(ProgressOf({.tolerance = 1e-8}, norms), 2.0 / 10, 1e-14);
  EXPECT_NEAR(ProgressOf({.tolerance = 1e-8, .relative_tolerance = true}, norms), 2.0 / 8, 1e-14);
}

TEST(NormOverTime, OfFourNorms) {
  const std::vector<double> squares = {9, 16, 0, 144};
  EXPECT_EQ(NormOverTime(TimeNorm::kOne, squares), 19);
  EXPECT_EQ(NormOverTime(TimeNorm::kTwo, squares), 13);
  EXPECT_EQ(NormOverTime(TimeNorm::kMax, squares), 12);
}

TEST(NormOverTime, IsNotFiniteWhereOneIsNot) {
  for (const TimeNorm norm : {TimeNorm::kOne, TimeNorm::kTwo, TimeNorm::kMax}) {
    for (const double value : {kNan, kInfinity}) {
      EXPECT_FALSE(std::isfinite(NormOverTime(norm, {value, 1, 2})));
      EXPECT_FALSE(std::isfinite(NormOverTime(norm, {1, value, 2})));
      EXPECT_FALSE(std::isfinite(NormOverTime(norm, {1, 2, value})));
    }
  }
}

}  // namespace
}  // namespace plait::mgrit
