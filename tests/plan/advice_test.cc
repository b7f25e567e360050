// Each branch of the advice, on clusters that are made for it. The models' bytes and FLOPs are worked out here.
#include "parallel/plan/advice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tools/plan_parts/planned_models.h"

namespace plait::planning {
namespace {

using parallel::Advice;
using parallel::Cluster;
using parallel::Decision;

// 24 blocks of 688,640 parameters, embedding and head of 8,192,000: 33.6 M, 16 bytes each: 0.538 GB.
const llama::LlamaOptions kLlama = {.max_seq_len = 128, .n_heads = 32, .n_kv_heads = 8};
constexpr double kStates = 16 * 33.6e6, kLayer = 8 * 8.192e6;

Cluster ClusterOf(int nodes, int ranks_per_node, double memory, double bandwidth) {
  Cluster cluster = {.nodes = nodes, .ranks_per_node = ranks_per_node, .processors_per_node = ranks_per_node};
  cluster.memory_bytes = memory;
  cluster.flops = {{"float32", 1e12}};
  cluster.memory_bandwidth = 1e11;
  cluster.activation_bandwidth = 2e10;
  cluster.within_node = cluster.between_nodes = {bandwidth, 1e-6};
  return cluster;
}

// Computing a step of 64 samples: 6 x 25.4 M x 128 tokens x 64 and attention, at 1 TFLOP/s: above 1.2 s on one rank.
// ZeRO-3's messages: some 0.4 GB: fast at 100 GB/s, slow at 100 MB/s.
constexpr double kFast = 1e11, kSlow = 1e8;

Advice AdviceFor(const Cluster& cluster) {
  const parallel::PlannedModel model = Planned(kLlama, 128, at::kFloat);
  const parallel::SearchOptions options = {.samples = 64};
  const auto ranked = Search(model, {}, options, cluster);
  EXPECT_TRUE(ranked.ok()) << ranked.status();
  const auto advice = Advise(model, {}, options, cluster, *ranked);
  EXPECT_TRUE(advice.ok()) << advice.status();
  return *advice;
}

TEST(Advice, OneRank) {
  EXPECT_EQ(AdviceFor(ClusterOf(1, 1, 10 * kStates, kFast)).decision, Decision::kOneRank);
  EXPECT_TRUE(AdviceFor(ClusterOf(1, 1, 10 * kStates, kFast)).best.has_value());
}

TEST(Advice, OneRankThatIsTooSmallOffloads) {
  Cluster cluster = ClusterOf(1, 1, 0.5 * kStates, kFast);
  EXPECT_EQ(AdviceFor(cluster).decision, Decision::kOffload);
  EXPECT_FALSE(AdviceFor(cluster).best.has_value());
  EXPECT_EQ(AdviceFor(cluster).reasons[2],
            "For offload there are 0.000 GB: too little; take disks, or more ranks.");
  cluster.offload_bytes = 1e12;
  EXPECT_EQ(AdviceFor(cluster).reasons[2], "For offload there are 1000.000 GB: enough.");
}

TEST(Advice, ALayerThatIsTooLargeIsTiled) {
  const Advice advice = AdviceFor(ClusterOf(1, 1, 0.9 * kLayer, kFast));
  EXPECT_EQ(advice.decision, Decision::kTiling);
  EXPECT_EQ(advice.reasons[1], "The largest layer does not: its weight and gradient take 0.066 GB.");
}

TEST(Advice, ANodeOnWhoseRanksItFitsReplicates) {
  const Advice advice = AdviceFor(ClusterOf(1, 4, 10 * kStates, kFast));
  EXPECT_EQ(advice.decision, Decision::kReplicate);
  ASSERT_TRUE(advice.best.has_value());
  EXPECT_EQ(advice.best->run.mesh.data_ranks(), 4);
}

TEST(Advice, ANodeOnWhoseRanksItDoesNotFitSplits) {
  const Advice advice = AdviceFor(ClusterOf(1, 8, 0.9 * kStates, kFast));
  EXPECT_EQ(advice.decision, Decision::kSplitOnNode);
  ASSERT_TRUE(advice.best.has_value());
  EXPECT_TRUE(advice.best->fits);
}

TEST(Advice, OverSlowLinksOnANodeStagesComeFirst) {
  const Advice advice = AdviceFor(ClusterOf(1, 8, 0.9 * kStates, kSlow));
  EXPECT_EQ(advice.decision, Decision::kStagesOnNode);
  ASSERT_TRUE(advice.best.has_value());
  EXPECT_GT(advice.best->run.mesh.pp, 1);
}

TEST(Advice, FastLinksBetweenNodesShard) {
  const Advice advice = AdviceFor(ClusterOf(4, 4, 0.9 * kStates, kFast));
  EXPECT_EQ(advice.decision, Decision::kShardAcrossNodes);
  ASSERT_TRUE(advice.best.has_value());
  EXPECT_LE(advice.best->run.mesh.tp, 4);
  EXPECT_EQ(advice.reasons.back(), "Tensor parallelism stays within a node: tp <= 4.");
}

TEST(Advice, SlowLinksBetweenNodesAndLittleMemoryTakeEverything) {
  const Advice advice = AdviceFor(ClusterOf(4, 4, 0.9 * kStates, kSlow));
  EXPECT_EQ(advice.decision, Decision::kEverything);
  ASSERT_TRUE(advice.best.has_value());
  EXPECT_GT(advice.best->run.mesh.pp, 1);
  EXPECT_FALSE(ShardsGradients(advice.best->run.strategy));
}

TEST(Advice, SlowLinksBetweenNodesAndEnoughMemoryReplicate) {
  EXPECT_EQ(AdviceFor(ClusterOf(4, 4, 10 * kStates, kSlow)).decision, Decision::kReplicateSlowly);
}

// Never across nodes, whatever the links.
TEST(Advice, NoMeshHasMoreTensorRanksThanANode) {
  const auto ranked =
      Search(Planned(kLlama, 128, at::kFloat), {}, {.samples = 64}, ClusterOf(4, 2, kStates, kFast));
  ASSERT_TRUE(ranked.ok());
  for (const parallel::Estimate& e : *ranked) EXPECT_LE(e.run.mesh.tp, 2) << ToText(e.run.mesh);
}

}  // namespace
}  // namespace plait::planning
