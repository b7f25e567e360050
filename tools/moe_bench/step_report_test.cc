// Numbers of several ranks with figures that are known.
#include "tools/moe_bench/step_report.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "comm/testing/world.h"

namespace plait::moe_bench {
namespace {

using comm::testing::World;

// Rank r has r + 1 rows of 12 and waits for others: the last one takes longest.
StepFacts FactsOf(int rank) {
  StepFacts facts;
  facts.step_ms = 10.0 * (rank + 1);
  facts.forward_ms = 3.0 * (rank + 1);
  facts.backward_ms = 6.0 * (rank + 1);
  facts.attention_ms = 5.0 - rank;
  facts.lines.planner_ms = 0.5 + rank;
  moe::PassTrace& trace = facts.lines.trace;
  trace.forward = {.gate = 0.002, .census = 0.003, .places = 0.001 * rank, .permutation = 0.25};
  trace.backward.permutation = 0.125 * (rank + 1);
  trace.forward.processor = 1.0 + rank;
  trace.backward.processor = 10.0 - rank;
  facts.lines.trace.computed_rows = 2;
  facts.lines.trace.sent_rows = rank;
  facts.routed_rows = 2;
  facts.sent_rows = rank;
  facts.wire_bytes = 100 * rank;
  facts.load.overload_factor = 1.25;
  facts.load.remote_rows = 7;
  facts.load.replicas = 3;
  return facts;
}

Config ConfigOf() {
  Config config;
  config.samples = 1;
  return config;
}

TEST(CombineRanks, TakesTheSlowestRankAndAddsCounts) {
  const int ranks = World().size(), last = ranks - 1;
  const BenchRanks bench(World());
  const absl::StatusOr<StepNumbers> step =
      CombineRanks(ConfigOf(), 4, {.ranks = ranks, .experts = 8, .row_bytes = 10, .expert_bytes = 1000},
                   FactsOf(World().rank()), bench);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->step_ms, 10.0 * ranks);
  EXPECT_EQ(step->forward_ms, 3.0 * ranks);
  EXPECT_EQ(step->backward_ms, 6.0 * ranks);
  EXPECT_EQ(step->attention_ms, 5);
  EXPECT_EQ(step->planner_ms, 0.5 + last);
  EXPECT_DOUBLE_EQ(step->gate_ms, 2);
  EXPECT_DOUBLE_EQ(step->census_ms, 3);
  EXPECT_DOUBLE_EQ(step->places_ms, last);
  EXPECT_DOUBLE_EQ(step->permutation_ms, 250 + 125.0 * ranks);
  // Another rank is the busiest in the backward pass.
  EXPECT_DOUBLE_EQ(step->critical_ms, 1000.0 * ranks + 10000);
  EXPECT_DOUBLE_EQ(step->mean_rank_ms, 11000);
  EXPECT_EQ(step->routed_rows, 2 * ranks);
  EXPECT_EQ(step->computed_rows, 2 * ranks);
  EXPECT_EQ(step->sent_rows, ranks * last / 2);
  EXPECT_EQ(step->sent_bytes, 100 * ranks * last / 2);
  EXPECT_EQ(step->traffic.rows, ranks == 1 ? 0 : 4 * 10 * ranks * last / 2);
  EXPECT_EQ(step->traffic.replicas, ranks == 1 ? 0 : 6000);
}

TEST(StepReport, SaysOfWhichThreadProcessorTimeIs) {
  const int ranks = World().size(), threads = at::get_num_threads();
  const BenchRanks bench(World());
  const Config config = ConfigOf();
  StepReport report(config, /*local_experts=*/8, bench);
  report.Add(*CombineRanks(config, 4, {.ranks = ranks, .experts = 8 * ranks, .row_bytes = 10},
                           FactsOf(World().rank()), bench));
  const auto says = [&](int count, const std::string& text) {
    at::set_num_threads(count);
    return report.Text().find(text) != std::string::npos;
  };
  EXPECT_TRUE(says(1, "processor time of experts, busiest rank"));
  EXPECT_TRUE(says(2, "processor time of experts (of each rank's first thread), busiest rank"));
  at::set_num_threads(threads);
}

TEST(CombineRanks, NamesLostRowsOnAllRanks) {
  const BenchRanks bench(World());
  const int last = World().size() - 1;
  const auto status_of = [&](auto change) {
    StepFacts facts = FactsOf(World().rank());
    if (World().rank() == last) change(facts);
    return CombineRanks(ConfigOf(), 4, {.ranks = World().size()}, facts, bench).status();
  };
  const std::string rows = std::to_string(2 * (last + 1)), fewer = std::to_string(2 * (last + 1) - 1);
  EXPECT_EQ(status_of([](StepFacts& f) { --f.lines.trace.computed_rows; }).message(),
            "step 4: of " + rows + " rows of all tokens " + rows + " were routed and " + fewer + " computed");
  EXPECT_EQ(status_of([](StepFacts& f) { --f.routed_rows; }).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status_of([](StepFacts& f) { ++f.lines.trace.sent_rows; }).code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(status_of([](StepFacts&) {}).ok());
}

}  // namespace
}  // namespace plait::moe_bench
