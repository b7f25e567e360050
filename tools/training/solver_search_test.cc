// The search with invented measurements: what is tried, in which order, and what is chosen.
#include "tools/training/solver_search.h"

#include <gtest/gtest.h>

#include <limits>

namespace plait::training {
namespace {

SolverCandidate Candidate(int levels, int factor, int forward, int backward, double predicted = 0) {
  return {.options = mgrit::MakeLayerParallelOptions(levels, factor, forward, backward),
          .predicted_seconds = predicted};
}

TEST(SolverSearch, TriesTheOwnSolverThenTheFastestPredicted) {
  SolverSearch search(Candidate(2, 4, 2, 1), 0.1);
  ASSERT_NE(search.next(), nullptr);
  EXPECT_EQ(TextOf(*search.next()), "2 levels, factor 4, 2 + 1 iterations");
  search.Take({.bias = 0.05, .seconds = 0.5, .serial_seconds = 0.6, .ratio = 0.5 / 0.6});
  search.Predict({Candidate(2, 8, 2, 1, 0.40), Candidate(2, 4, 1, 1, 0.30), Candidate(2, 2, 2, 1, 0.55)});
  EXPECT_EQ(TextOf(*search.next()), "2 levels, factor 4, 1 + 1 iterations");
  // Fast, but too far from the exact gradient.
  search.Take({.bias = 0.3, .seconds = 0.3, .serial_seconds = 0.6, .ratio = 0.3 / 0.6});
  EXPECT_EQ(TextOf(*search.next()), "2 levels, factor 8, 2 + 1 iterations");
  search.Take({.bias = 0.09, .seconds = 0.45, .serial_seconds = 0.6, .ratio = 0.45 / 0.6});
  EXPECT_EQ(search.next(), nullptr);  // the last one is predicted slower than what is there
  ASSERT_NE(search.choice(), nullptr);
  EXPECT_EQ(TextOf(*search.choice()), "2 levels, factor 8, 2 + 1 iterations");
  EXPECT_EQ(
      search.Reason(),
      "2 levels, factor 8, 2 + 1 iterations: 0.45 s a step, 0.75 of serial propagation beside it, gradient "
      "bias 0.09 (limit 0.1); the fastest of 3 tried");
}

TEST(SolverSearch, SkipsWhatIsNoMoreExactThanOneThatWasNotExactEnough) {
  SolverSearch search(Candidate(2, 4, 2, 1), 0.1);
  search.Take({.bias = 0.5, .seconds = 0.5, .serial_seconds = 0.6, .ratio = 0.5 / 0.6});
  search.Predict({Candidate(2, 4, 1, 1, 0.1), Candidate(3, 4, 2, 1, 0.1), Candidate(2, 16, 2, 1, 0.1),
                  Candidate(2, 4, 2, 2, 0.4)});
  EXPECT_EQ(TextOf(*search.next()), "2 levels, factor 4, 2 + 2 iterations");
}

TEST(SolverSearch, SerialWhereItIsFasterOrNothingIsExactEnough) {
  SolverSearch slower(Candidate(2, 4, 2, 1), 0.1);
  slower.Take({.bias = 0.01, .seconds = 0.7, .serial_seconds = 0.6, .ratio = 0.7 / 0.6});
  slower.Predict({Candidate(2, 8, 1, 1, 0.65)});
  EXPECT_EQ(slower.next(), nullptr);
  EXPECT_EQ(slower.choice(), nullptr);
  EXPECT_EQ(
      slower.Reason(),
      "serial propagation, 0.6 s a step; the fastest of 1 tried does not gain 5 %: 2 levels, factor 4, 2 + "
      "1 iterations: 0.7 s a step, 1.17 of serial propagation beside it, gradient bias 0.01 (limit 0.1)");

  for (const double seconds : {0.56, 0.58}) {
    SolverSearch near(Candidate(2, 4, 2, 1), 0.1);
    near.Take({.bias = 0.01, .seconds = seconds, .serial_seconds = 0.6, .ratio = seconds / 0.6});
    EXPECT_EQ(near.choice() != nullptr, seconds < 0.95 * 0.6);
  }

  // The machine was slow when the second one was tried, for both ways: the first is faster.
  SolverSearch drift(Candidate(2, 4, 2, 1), 0.1);
  drift.Take({.bias = 0.01, .seconds = 0.5, .serial_seconds = 0.8, .ratio = 0.6});
  drift.Predict({Candidate(2, 8, 2, 1, 0.3)});
  drift.Take({.bias = 0.01, .seconds = 0.4, .serial_seconds = 0.5, .ratio = 0.8});
  EXPECT_EQ(TextOf(*drift.choice()), "2 levels, factor 4, 2 + 1 iterations");

  SolverSearch diverged(Candidate(2, 4, 2, 1), 0.1);
  diverged.Take({.bias = std::numeric_limits<double>::quiet_NaN(),
                 .seconds = 0.1,
                 .serial_seconds = 0.6,
                 .ratio = 0.1 / 0.6});
  diverged.Predict({});
  EXPECT_EQ(diverged.choice(), nullptr);
  EXPECT_NE(diverged.Reason().find("no gradient of 1 tried is within 0.1 of the exact one"),
            std::string::npos)
      << diverged.Reason();
}

TEST(SolverSearch, EndsBehindFiveTrials) {
  SolverSearch search(Candidate(2, 4, 2, 1), 0.1);
  search.Take({.bias = 0.5, .seconds = 0.5, .serial_seconds = 0.6, .ratio = 0.5 / 0.6});
  std::vector<SolverCandidate> candidates;
  for (int iterations = 2; iterations < 20; ++iterations) {
    candidates.push_back(Candidate(2, 4, iterations, iterations, 0.1 + 0.01 * iterations));
  }
  search.Predict(candidates);
  int trials = 1;
  for (; search.next() != nullptr; ++trials) {
    search.Take({.bias = 0.5, .seconds = 0.2, .serial_seconds = 0.6, .ratio = 0.2 / 0.6});
  }
  EXPECT_EQ(trials, SolverSearch::kTrials);
}

// A hold of coarse steps makes them more exact: it is another candidate, whose text says so.
TEST(SolverSearch, CandidatesHaveEachHold) {
  const auto own = mgrit::MakeLayerParallelOptions(2, 4, 2, 1);
  const auto without = CandidatesLike(own, {}), with = CandidatesLike(own, {0, 2});
  EXPECT_EQ(with.size(), 3 * without.size());
  EXPECT_NE(TextOf(with[2]).find("coarse hold 2"), std::string::npos) << TextOf(with[2]);
  for (const SolverCandidate& candidate : with) {
    EXPECT_EQ(candidate.options.forward.cf_sweeps, own.forward.cf_sweeps);
    EXPECT_EQ(candidate.options.forward.cfactors, candidate.options.backward.cfactors);
  }
}

}  // namespace
}  // namespace plait::training
