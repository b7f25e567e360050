#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "comm/communicator.h"
#include "mgrit/solver.h"
#include "mgrit/testing/reference_histories.h"

namespace plait::mgrit {
namespace {

using testing::ReferenceHistory;

class ReferenceHistoryTest : public ::testing::TestWithParam<ReferenceHistory> {};

// 2-norm of the C-points of level 0.
double NormOfCPoints(AnyProblem& problem, const Solver& solver, int cfactor) {
  std::vector<double> squares(static_cast<std::size_t>(solver.last_point() / cfactor + 1));
  for (std::size_t k = 0; k < squares.size(); ++k) {
    const auto slot = static_cast<std::int64_t>(k);
    problem.PutNorm(slot, solver.state(slot * cfactor));
  }
  problem.TakeNorms(absl::MakeSpan(squares));
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
}

// To eight digits, or to rounding: a residual is a difference of states, each accurate to about half an ulp.
TEST_P(ReferenceHistoryTest, IsReproduced) {
  const ReferenceHistory& reference = GetParam();
  const auto problem = reference.make_problem();
  Options options = reference.options;
  options.max_iterations = static_cast<int>(reference.residual_norms.size());
  Solver solver(*problem, reference.time, options, comm::Communicator::Self());
  const Solution solution = solver.Solve();

  // A sum of as many residuals, instead of the root of the sum of their squares.
  const double points = static_cast<double>(reference.time.steps / options.cfactors[0]);
  const double rounding = (options.time_norm == TimeNorm::kOne ? std::sqrt(points) : 1.0) *
                          std::numeric_limits<double>::epsilon() *
                          NormOfCPoints(*problem, solver, options.cfactors[0]);
  ASSERT_EQ(solution.residual_norms.size(), reference.residual_norms.size());
  for (std::size_t k = 0; k < reference.residual_norms.size(); ++k) {
    const double expected = reference.residual_norms[k];
    const double actual = solution.residual_norms[k];
    if (!std::isnan(expected)) {
      EXPECT_NEAR(actual, expected, 1e-8 * expected + rounding) << "iteration " << k;
    } else if (options.residual_time == ResidualTime::kRestriction) {
      EXPECT_TRUE(std::isnan(actual)) << "iteration " << k << " should have no residual";
    }
  }
}

const auto kName = [](const ::testing::TestParamInfo<ReferenceHistory>& info) { return info.param.name; };

INSTANTIATE_TEST_SUITE_P(XBraid, ReferenceHistoryTest, ::testing::ValuesIn(testing::XBraidHistories()),
                         kName);
INSTANTIATE_TEST_SUITE_P(PyMgrit, ReferenceHistoryTest, ::testing::ValuesIn(testing::PyMgritHistories()),
                         kName);

}  // namespace
}  // namespace plait::mgrit
