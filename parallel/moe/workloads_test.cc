// Workloads against what their names say, and against probabilities worked out from their weights.
#include "parallel/moe/workloads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "parallel/moe/placement.h"

namespace plait::moe {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

std::vector<std::int64_t> RowsOfExperts(const WorkloadOptions& options, std::int64_t step,
                                        std::int64_t tokens) {
  std::vector<std::int64_t> rows(options.experts);
  for (const std::int64_t expert : ExpertIds(options, step, 0, tokens)) ++rows.at(expert);
  return rows;
}

std::vector<std::int64_t> Sorted(std::vector<std::int64_t> rows) {
  std::sort(rows.rbegin(), rows.rend());
  return rows;
}

// Chance of being among two draws without replacement.
double InTopTwo(const std::vector<double>& p, std::size_t expert) {
  double chance = p[expert];
  for (std::size_t first = 0; first < p.size(); ++first) {
    if (first != expert) chance += p[first] * p[expert] / (1 - p[first]);
  }
  return chance;
}

// Five standard deviations of a count.
void ExpectCounts(const std::vector<std::int64_t>& rows, const std::vector<double>& p, std::int64_t tokens) {
  for (std::size_t expert = 0; expert < p.size(); ++expert) {
    const double chance = InTopTwo(p, expert), mean = chance * static_cast<double>(tokens);
    EXPECT_NEAR(static_cast<double>(rows[expert]), mean, 5 * std::sqrt(mean * (1 - chance)) + 1e-9) << expert;
  }
}

TEST(WorkloadsTest, DistinctExpertsAndTheSameForAnySplit) {
  for (const Workload workload : kWorkloads) {
    for (const int k : {1, 2, 4}) {
      const WorkloadOptions options = {.workload = workload, .seed = 3, .experts = 7, .ranks = 4, .k = k};
      for (const std::int64_t step : {0, 1, 7}) {
        const std::vector<std::int64_t> all = ExpertIds(options, step, 0, 100);
        ASSERT_EQ(all.size(), 100U * k);
        std::vector<std::int64_t> parts;
        for (const auto& [first, tokens] :
             {std::pair(0, 1), std::pair(1, 0), std::pair(1, 60), std::pair(61, 39)}) {
          const std::vector<std::int64_t> part = ExpertIds(options, step, first, tokens);
          parts.insert(parts.end(), part.begin(), part.end());
        }
        EXPECT_EQ(parts, all) << Name(workload);
        for (std::int64_t token = 0; token < 100; ++token) {
          const std::set<std::int64_t> experts(all.begin() + token * k, all.begin() + (token + 1) * k);
          EXPECT_EQ(experts.size(), static_cast<std::size_t>(k)) << Name(workload);
          EXPECT_TRUE(*experts.begin() >= 0 && *experts.rbegin() < 7);
        }
      }
    }
  }
}

TEST(WorkloadsTest, StepAndSeedMatter) {
  for (const Workload workload : kWorkloads) {
    WorkloadOptions options = {.workload = workload, .seed = 1, .experts = 16, .ranks = 4, .k = 2};
    const std::vector<std::int64_t> ids = ExpertIds(options, 7, 0, 50);
    EXPECT_NE(ExpertIds(options, 8, 0, 50), ids) << Name(workload);
    options.seed = 2;
    EXPECT_NE(ExpertIds(options, 7, 0, 50), ids) << Name(workload);
  }
}

TEST(WorkloadsTest, KOfAllExperts) {
  const WorkloadOptions options = {
      .workload = Workload::kSpread, .experts = 16, .k = 16, .zipf_exponent = 20};
  EXPECT_THAT(RowsOfExperts(options, 0, 40), Each(40));
}

TEST(WorkloadsTest, Balanced) {
  const WorkloadOptions options = {
      .workload = Workload::kBalanced, .seed = 5, .experts = 12, .ranks = 4, .k = 3};
  EXPECT_THAT(RowsOfExperts(options, 3, 100), Each(25));
}

TEST(WorkloadsTest, HotSet) {
  const WorkloadOptions options = {
      .workload = Workload::kHotSet, .seed = 5, .experts = 24, .k = 2, .hot_share = 0.7};
  std::vector<double> p(24, 0.3 / 21);
  p[0] = p[1] = p[2] = 0.7 / 3;
  // Sorting equal chances biases the k-th of a few experts, but by less than five standard deviations.
  ExpectCounts(Sorted(RowsOfExperts(options, 0, 20000)), p, 20000);
}

TEST(WorkloadsTest, HotRank) {
  const WorkloadOptions options = {
      .workload = Workload::kHotRank, .seed = 5, .experts = 14, .ranks = 4, .k = 2};
  const std::vector<std::int64_t> rows = RowsOfExperts(options, 0, 20000);
  const ExpertPlacement homes(4, 14);
  const int hot =
      homes.home_rank(static_cast<int>(std::max_element(rows.begin(), rows.end()) - rows.begin()));
  std::vector<double> p(14, 0.5 / (14 - homes.home_experts(hot)));
  for (const int expert : homes.slots(hot)) p[expert] = 0.5 / homes.home_experts(hot);
  ExpectCounts(rows, p, 20000);
}

std::vector<double> ZipfChances(int experts, double exponent) {
  double sum = 0;
  std::vector<double> p(experts);
  for (int i = 0; i < experts; ++i) sum += p[i] = std::pow(i + 1, -exponent);
  for (double& chance : p) chance /= sum;
  return p;
}

TEST(WorkloadsTest, SpreadIsZipf) {
  const WorkloadOptions options = {
      .workload = Workload::kSpread, .seed = 5, .experts = 6, .k = 2, .zipf_exponent = 1.5};
  ExpectCounts(Sorted(RowsOfExperts(options, 0, 20000)), ZipfChances(6, 1.5), 20000);
  EXPECT_EQ(RowsOfExperts(options, 0, 1000).size(), 6U);
}

int Hottest(const WorkloadOptions& options, std::int64_t step) {
  const std::vector<std::int64_t> rows = RowsOfExperts(options, step, 2000);
  return static_cast<int>(std::max_element(rows.begin(), rows.end()) - rows.begin());
}

TEST(WorkloadsTest, RotatingVisitsAllExpertsAndSpreadOne) {
  WorkloadOptions options = {
      .workload = Workload::kRotating, .seed = 5, .experts = 6, .k = 2, .zipf_exponent = 1.5};
  std::set<int> hottest;
  for (std::int64_t step = 0; step < 6; ++step) hottest.insert(Hottest(options, step));
  EXPECT_EQ(hottest.size(), 6U);
  EXPECT_EQ(Hottest(options, 6), Hottest(options, 0));
  options.workload = Workload::kSpread;
  for (std::int64_t step = 1; step < 6; ++step) EXPECT_EQ(Hottest(options, step), Hottest(options, 0));
}

TEST(WorkloadsTest, RaggedTokens) {
  const WorkloadOptions ragged = {.workload = Workload::kRagged, .experts = 8, .ranks = 4};
  // In proportion to 0, 1, 2, 3: of 60.
  const std::int64_t first[] = {0, 0, 10, 30, 60};
  for (int rank = 0; rank <= 4; ++rank) EXPECT_EQ(FirstToken(ragged, 15, rank), first[rank]);
  const WorkloadOptions alone = {.workload = Workload::kRagged, .experts = 8, .ranks = 1};
  EXPECT_EQ(FirstToken(alone, 15, 1), 15);
  const WorkloadOptions even = {.workload = Workload::kSpread, .experts = 8, .ranks = 4};
  for (int rank = 0; rank <= 4; ++rank) EXPECT_EQ(FirstToken(even, 15, rank), 15 * rank);
}

TEST(WorkloadsTest, ZeroLoad) {
  const WorkloadOptions options = {
      .workload = Workload::kZeroLoad, .seed = 5, .experts = 8, .ranks = 4, .k = 2};
  const std::vector<double> p = {0, .2, .2, .2, .2, .2, 0, 0};
  ExpectCounts(RowsOfExperts(options, 0, 20000), p, 20000);
  const WorkloadOptions alone = {
      .workload = Workload::kZeroLoad, .seed = 5, .experts = 3, .ranks = 1, .k = 2};
  ExpectCounts(RowsOfExperts(alone, 0, 20000), {0, .5, .5}, 20000);
}

TEST(WorkloadsTest, BurstInEveryEighthStep) {
  const WorkloadOptions options = {.workload = Workload::kBurst, .seed = 5, .experts = 16, .k = 2};
  for (std::int64_t step = 0; step < 24; ++step) {
    const std::vector<std::int64_t> rows = Sorted(RowsOfExperts(options, step, 800));
    EXPECT_EQ(rows[0] == rows[15], step % 8 != 7) << step;
    // Two experts with half of the first choices.
    EXPECT_EQ(rows[1] > 3 * rows[2], step % 8 == 7) << step;
  }
}

TEST(WorkloadsTest, MoreRanksThanExperts) {
  for (const Workload workload : kWorkloads) {
    const WorkloadOptions options = {.workload = workload, .experts = 3, .ranks = 8, .k = 1};
    EXPECT_TRUE(Validate(options).ok()) << Name(workload);
    EXPECT_EQ(ExpertIds(options, 7, 0, 9).size(), 9U);
  }
}

std::string ErrorOf(const WorkloadOptions& options) { return std::string(Validate(options).message()); }

TEST(WorkloadsTest, BadInput) {
  EXPECT_THAT(ErrorOf({.experts = 0}), HasSubstr("0 experts on 1 ranks; expected at least one of each"));
  EXPECT_THAT(ErrorOf({.experts = 4, .k = 5}), HasSubstr("k is 5; expected 1 to 4"));
  EXPECT_THAT(ErrorOf({.experts = 4, .k = 0}), HasSubstr("k is 0; expected 1 to 4"));
  EXPECT_THAT(ErrorOf({.workload = Workload::kZeroLoad, .experts = 4, .ranks = 2, .k = 2}),
              HasSubstr("k is 2; expected 1 to 1, the experts that may have tokens"));
  EXPECT_THAT(ErrorOf({.experts = 4, .zipf_exponent = NAN}), HasSubstr("expected 0 to 20"));
  EXPECT_THAT(ErrorOf({.experts = 4, .hot_share = 1}), HasSubstr("between 0 and 1"));
  Workload workload = Workload::kBalanced;
  EXPECT_TRUE(ParseWorkload("W3", &workload).ok());
  EXPECT_EQ(workload, Workload::kSpread);
  EXPECT_TRUE(ParseWorkload("burst", &workload).ok());
  EXPECT_EQ(workload, Workload::kBurst);
  EXPECT_THAT(std::string(ParseWorkload("W8", &workload).message()),
              HasSubstr("'W8'; expected one of W0 balanced, W1 hot-set, W2 hot-rank"));
}

}  // namespace
}  // namespace plait::moe
