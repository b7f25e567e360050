// Schedules against figures and formulas of their papers, for all numbers of stages, chunks and micro-batches up to 8;
// and the simulator's errors for invalid schedules.
#include "parallel/pipeline/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "parallel/pipeline/simulator.h"

namespace plait::parallel {
namespace {

using testing::HasSubstr;

constexpr int kMost = 8;
constexpr double kRounding = 1e-12;

struct Case {
  ScheduleKind kind;
  int ranks, chunks, micro_batches;
  std::string Text() const {
    return std::string(Name(kind)) + " ranks " + std::to_string(ranks) + " chunks " + std::to_string(chunks) +
           " micro-batches " + std::to_string(micro_batches);
  }
};

// All arguments up to kMost that the schedule accepts.
std::vector<Case> CasesOf(ScheduleKind kind) {
  std::vector<Case> cases;
  for (int ranks = 1; ranks <= kMost; ++ranks) {
    for (int chunks = 1; chunks <= kMost; ++chunks) {
      for (int m = 1; m <= kMost; ++m) {
        const Case c = {kind, ranks, chunks, m};
        if (kind == ScheduleKind::kZbv ? chunks != 2 : kind != ScheduleKind::kInterleaved && chunks != 1)
          continue;
        if (kind == ScheduleKind::kInterleaved && chunks > 1 && m % ranks != 0) continue;
        cases.push_back(c);
      }
    }
  }
  return cases;
}

Schedule ScheduleOf(const Case& c) {
  return *MakeSchedule(c.kind, {.ranks = c.ranks, .chunks = c.chunks, .micro_batches = c.micro_batches});
}

Simulation Simulated(const Case& c, const ActionCosts& costs = {}) {
  const absl::StatusOr<Simulation> simulation = Simulate(ScheduleOf(c), costs);
  EXPECT_TRUE(simulation.ok()) << c.Text() << ": " << simulation.status();
  Simulation none;
  none.most_in_flight.resize(c.ranks);
  return simulation.value_or(none);
}

TEST(Schedules, RunEveryActionOnceWithoutDeadlock) {
  int cases = 0;
  for (const ScheduleKind kind : kScheduleKinds) {
    for (const Case& c : CasesOf(kind)) {
      const Schedule schedule = ScheduleOf(c);
      const absl::StatusOr<Simulation> simulation = Simulate(schedule);
      ASSERT_TRUE(simulation.ok()) << c.Text() << ": " << simulation.status();
      const bool split = kind == ScheduleKind::kZbH1 || kind == ScheduleKind::kZbv;
      for (const std::vector<Action>& actions : schedule.actions) {
        EXPECT_EQ(actions.size(), (split ? 3u : 2u) * c.chunks * c.micro_batches) << c.Text();
      }
      // For any costs.
      EXPECT_TRUE(
          Simulate(schedule, {.forward = 1, .input_gradient = 2.3, .weight_gradient = 0.4, .send = 0.7}).ok())
          << c.Text();
      ++cases;
    }
  }
  EXPECT_GT(cases, 300);
}

// (S - 1)(F + B) for GPipe and 1F1B: Narayanan et al., 2021, section 2.2.1; the ideal time is M (F + B).
TEST(Schedules, GpipeAnd1F1BHaveTheirBubble) {
  const ActionCosts costs = {.forward = 2, .input_gradient = 3, .weight_gradient = 1.5};
  for (const ScheduleKind kind : {ScheduleKind::kGpipe, ScheduleKind::k1F1B}) {
    for (const Case& c : CasesOf(kind)) {
      const Simulation simulation = Simulated(c, costs);
      const double expected = (c.ranks - 1.0) / (c.micro_batches + c.ranks - 1);
      EXPECT_NEAR(simulation.bubble, expected, kRounding) << c.Text();
      EXPECT_NEAR(simulation.makespan, (c.micro_batches + c.ranks - 1) * 6.5, kRounding * 100) << c.Text();
      for (int rank = 0; rank < c.ranks; ++rank) {
        EXPECT_EQ(simulation.most_in_flight[rank],
                  kind == ScheduleKind::kGpipe ? c.micro_batches : std::min(c.ranks - rank, c.micro_batches))
            << c.Text();
      }
    }
  }
}

// The bubble is (S - 1)(F + B) / v: section 2.2.2. In flight on rank 0 are S v + S - 1 stages: 1 + (S - 1)/(S v)
// times those of 1F1B, Korthikanti et al., 2022, section 4.2.3.
TEST(Schedules, InterleavedDividesTheBubble) {
  for (const Case& c : CasesOf(ScheduleKind::kInterleaved)) {
    const Simulation simulation = Simulated(c);
    const double work = c.micro_batches * c.chunks, idle = c.ranks - 1;  // in F + B of a stage
    EXPECT_NEAR(simulation.bubble, idle / (work + idle), kRounding) << c.Text();
    const int all = c.micro_batches * c.chunks;
    const int most = c.chunks == 1 ? c.ranks : c.ranks * c.chunks + c.ranks - 1;
    EXPECT_EQ(simulation.most_in_flight[0], std::min(most, all)) << c.Text();
  }
}

// Qi et al., 2024, table 2 and section 2: 1F1B (S - 1)(F + I + W), ZB-H1 (S - 1)(F + I - W), in flight at most S.
TEST(Schedules, ZbH1HasAThirdOfTheBubble) {
  for (Case c : CasesOf(ScheduleKind::kZbH1)) {
    const Simulation few = Simulated(c);
    EXPECT_LE(*std::max_element(few.most_in_flight.begin(), few.most_in_flight.end()), c.ranks) << c.Text();
    EXPECT_LE(few.bubble, (c.ranks - 1.0) / (c.micro_batches + c.ranks - 1) + kRounding) << c.Text();
    if (c.micro_batches < c.ranks) continue;  // the formula is of a full pipeline
    EXPECT_NEAR(few.makespan, 3.0 * c.micro_batches + (c.ranks - 1), kRounding * 100) << c.Text();
    EXPECT_EQ(few.most_in_flight, std::vector<int>(c.ranks, c.ranks)) << c.Text();
  }
}

// Section 6: no bubble with F = I = W, in flight as much as 1F1B on rank 0: S stages of a rank, 2 S halves.
TEST(Schedules, ZbvHasNoBubble) {
  for (Case c : CasesOf(ScheduleKind::kZbv)) {
    for (const int micro_batches : {c.micro_batches, 2 * c.ranks - 1 + c.micro_batches}) {
      c.micro_batches = micro_batches;
      const Simulation simulation = Simulated(c);
      EXPECT_LE(*std::max_element(simulation.most_in_flight.begin(), simulation.most_in_flight.end()),
                2 * c.ranks)
          << c.Text();
      if (micro_batches < 2 * c.ranks) continue;
      EXPECT_NEAR(simulation.bubble, 0, kRounding) << c.Text();
      EXPECT_EQ(simulation.most_in_flight, std::vector<int>(c.ranks, 2 * c.ranks)) << c.Text();
    }
  }
}

TEST(Schedules, ReadAsTheFiguresOfTheirPapers) {
  EXPECT_EQ(ToText(ScheduleOf({ScheduleKind::kGpipe, 2, 1, 3})),
            "0F0 0F1 0F2 0B0 0B1 0B2\n"
            "1F0 1F1 1F2 1B0 1B1 1B2\n");
  // Narayanan et al., 2021, figure 4, with fewer ranks and micro-batches.
  EXPECT_EQ(ToText(ScheduleOf({ScheduleKind::k1F1B, 3, 1, 4})),
            "0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3\n"
            "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3\n"
            "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3\n");
  EXPECT_EQ(ToText(ScheduleOf({ScheduleKind::kInterleaved, 2, 2, 2})),
            "0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1\n"
            "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1\n");
  EXPECT_EQ(ToText(ScheduleOf({ScheduleKind::kZbH1, 2, 1, 3})),
            "0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2\n"
            "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2\n");
  EXPECT_EQ(MakeSchedule(ScheduleKind::kZbv, {.ranks = 3})->rank_of_stage,
            (std::vector<int>{0, 1, 2, 2, 1, 0}));
}

TEST(Schedules, RefuseWhatDoesNotFit) {
  const auto error = [](ScheduleKind kind, const ScheduleOptions& options) {
    return std::string(MakeSchedule(kind, options).status().message());
  };
  EXPECT_EQ(error(ScheduleKind::kInterleaved, {.ranks = 4, .chunks = 2, .micro_batches = 6}),
            "interleaved: 6 micro-batches; expected a multiple of the 4 ranks of pp");
  EXPECT_THAT(error(ScheduleKind::kZbv, {.ranks = 2, .chunks = 3}),
              HasSubstr("2 stages on each rank, not 3"));
  EXPECT_THAT(error(ScheduleKind::k1F1B, {.ranks = 2, .chunks = 2}),
              HasSubstr("one stage on each rank, not 2"));
  EXPECT_EQ(error(ScheduleKind::kInterleaved, {.ranks = 2, .chunks = 1 << 30, .micro_batches = 2}),
            "interleaved: 2147483648 stages and 2 micro-batches; expected at most 16777216 passes of "
            "micro-batches over stages");
  EXPECT_THAT(error(ScheduleKind::kGpipe, {.ranks = 2, .micro_batches = 0}),
              HasSubstr("at least one of each"));
  EXPECT_EQ(ParseScheduleKind("2f2b").status().message(),
            "no pipeline schedule \"2f2b\"; expected gpipe or 1f1b or interleaved or zb-h1 or zbv");
  for (const ScheduleKind kind : kScheduleKinds) EXPECT_EQ(*ParseScheduleKind(Name(kind)), kind);
}

std::string ErrorOf(const Schedule& schedule) { return std::string(Simulate(schedule).status().message()); }

TEST(Simulator, NamesWhatIsWrong) {
  const Schedule good = *MakeSchedule(ScheduleKind::k1F1B, {.ranks = 2, .micro_batches = 2});
  Schedule bad = good;
  std::swap(bad.actions[1][0], bad.actions[1][1]);
  EXPECT_EQ(ErrorOf(bad), "rank 1: 1B0 comes before its forward");
  bad = good;
  bad.actions[0].pop_back();
  EXPECT_EQ(ErrorOf(bad), "rank 0: no backward of 0F1");
  bad = good;
  bad.actions[0].push_back(bad.actions[0].back());
  EXPECT_EQ(ErrorOf(bad), "rank 0: 0B1 comes twice");
  bad = good;
  bad.actions[0][0].stage = 1;
  EXPECT_EQ(ErrorOf(bad), "rank 0: 1F0 is not its own");
  bad = *MakeSchedule(ScheduleKind::kZbH1, {.ranks = 2, .micro_batches = 2});
  bad.actions[1].pop_back();
  EXPECT_EQ(ErrorOf(bad), "rank 1: no 1W1");
  // Both wait for each other's backward of another micro-batch.
  bad = good;
  bad.actions[0] = {{ActionKind::kForward, 0, 0},
                    {ActionKind::kBackward, 0, 0},
                    {ActionKind::kForward, 0, 1},
                    {ActionKind::kBackward, 0, 1}};
  bad.actions[1] = {{ActionKind::kForward, 1, 0},
                    {ActionKind::kForward, 1, 1},
                    {ActionKind::kBackward, 1, 0},
                    {ActionKind::kBackward, 1, 1}};
  EXPECT_EQ(ErrorOf(bad),
            "deadlock: rank 0 waits in 0B0 for 1B0 of rank 1; rank 1 waits in 1F1 for 0F1 of rank 0");
}

TEST(Simulator, AddsLatenciesAndCostsOfStages) {
  const Schedule schedule = *MakeSchedule(ScheduleKind::k1F1B, {.ranks = 2, .micro_batches = 1});
  const Simulation simulation = *Simulate(schedule, {.send = 0.5, .of_stage = {1, 3}});
  // F 0-1, sent till 1.5, F 1.5-4.5, B 4.5-10.5, sent till 11, B 11-13.
  EXPECT_NEAR(simulation.makespan, 13, kRounding);
  EXPECT_NEAR(simulation.timeline[1][1].begin, 4.5, kRounding);
  EXPECT_NEAR(simulation.bubble, 1 - 3.0 / 13, kRounding);
}

}  // namespace
}  // namespace plait::parallel
