// Each branch of the advice, on clusters that are made for it. The models' bytes and FLOPs are worked out here.
#include "parallel/plan/advice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/plan_parts/planned_models.h"

namespace plait::planning {
namespace {

using parallel::Advice;
using parallel::Cluster;
using parallel::Decision;

// 24 blocks of 717,312 parameters, embedding and head of 8,192,000: 33.6 M, 16 bytes each: 0.538 GB.
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

Advice AdviceFor(const Cluster& cluster, const parallel::PlannedRun& base = {}, int ranks = 0) {
  const parallel::PlannedModel model = Planned(kLlama, 128, at::kFloat);
  const parallel::SearchOptions options = {.samples = 64, .ranks = ranks};
  const auto ranked = Search(model, base, options, cluster);
  EXPECT_TRUE(ranked.ok()) << ranked.status();
  const auto advice = Advise(model, base, options, cluster, *ranked);
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
  ASSERT_EQ(AdviceFor(cluster).reasons.size(), 3u);
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

TEST(Advice, SlowReplicasTakeNoOtherMesh) {
  const Advice advice = AdviceFor(ClusterOf(4, 4, 10 * kStates, kSlow));
  ASSERT_TRUE(advice.best.has_value());
  EXPECT_EQ(advice.best->run.mesh.data_ranks(), 16);
  EXPECT_FALSE(ShardsGradients(advice.best->run.strategy));
}

// Only with the ranks of the options, not of the cluster.
TEST(Advice, IsForTheRanksThatAreAskedFor) {
  EXPECT_EQ(AdviceFor(ClusterOf(1, 8, 10 * kStates, kFast), {}, 1).decision, Decision::kOneRank);
  EXPECT_EQ(AdviceFor(ClusterOf(4, 4, 10 * kStates, kSlow), {}, 4).decision, Decision::kReplicate);
}

// "...takes 1.5 s of a step, its computing 2 s.": both numbers.
std::pair<double, double> SecondsIn(const std::string& reason) {
  double messages = 0, computing = 0;
  const std::size_t begin = reason.find("messages take");
  EXPECT_NE(begin, std::string::npos) << reason;
  EXPECT_EQ(std::sscanf(reason.c_str() + begin, "messages take %lf s of a step, its computing %lf s",
                        &messages, &computing),
            2)
      << reason;
  return {messages, computing};
}

TEST(Advice, ReasonsHaveTheirNumbers) {
  Cluster cluster = ClusterOf(1, 8, 0.9 * kStates, kSlow);
  cluster.activation_bandwidth = 1e30;  // nothing but products
  const Advice advice = AdviceFor(cluster);
  ASSERT_EQ(advice.reasons.size(), 3u);
  EXPECT_EQ(advice.reasons[0].substr(0, 56), "The model's states and one sample do not fit on a rank: ");
  // And what a sample of 128 tokens keeps, beside 16 bytes a parameter: in 24 layers 25 MB of probabilities alone.
  const double gigabytes = std::stod(advice.reasons[0].substr(56));
  EXPECT_GT(gigabytes, kStates / 1e9);
  EXPECT_LT(gigabytes, 1.25 * kStates / 1e9);
  EXPECT_EQ(advice.reasons[1], "The largest layer fits: its weight and gradient take 0.066 GB.");
  EXPECT_EQ(advice.reasons[2].substr(0, 14), "Links are slow");
  const auto [messages, computing] = SecondsIn(advice.reasons[2]);
  // 33,599,744 floats, gathered twice and scattered once among 8; 6 FLOPs a token for each but the embedding's, and 12 x
  // 24 x 256 x 128 of attention.
  EXPECT_NEAR(messages, 3 * 4 * 33599744.0 * 7 / 8 / kSlow, 0.01);
  const double flops = 6 * (33599744.0 - 8192000) + 12.0 * 24 * 256 * 128;
  EXPECT_NEAR(computing, 64 * 128 * flops / 8 / 1e12, 0.01 * computing);
  // Activations take time too; the micro-batch of a base run says nothing.
  cluster.activation_bandwidth = 2e9;
  const Advice slower = AdviceFor(cluster, {.micro_batch = 64});
  EXPECT_GT(SecondsIn(slower.reasons[2]).second, 1.5 * computing);
  EXPECT_EQ(slower.reasons[0], advice.reasons[0]);
}

TEST(Advice, ALayerThatIsTooLargeForRanksIsSplitOrTiled) {
  const Advice advice = AdviceFor(ClusterOf(1, 8, 0.9 * kLayer, kFast));
  EXPECT_EQ(advice.reasons[1],
            "The largest layer does not: its weight and gradient take 0.066 GB; split it (tp) or tile it.");
}

TEST(Advice, SaysWhatItHasDecided) {
  const auto choice = [](int nodes, int ranks, double memory, double bandwidth) {
    return AdviceFor(ClusterOf(nodes, ranks, memory, bandwidth)).choice;
  };
  EXPECT_EQ(choice(1, 1, 10 * kStates, kFast), "one rank, no change");
  EXPECT_EQ(choice(1, 1, 0.5 * kStates, kFast).substr(0, 18), "ZeRO with offload:");
  EXPECT_EQ(choice(1, 1, 0.9 * kLayer, kFast).substr(0, 28), "ZeRO with offload and tiling");
  EXPECT_EQ(choice(1, 4, 10 * kStates, kFast).substr(0, 12), "DDP, or ZeRO");
  EXPECT_EQ(choice(1, 8, 0.9 * kStates, kFast).substr(0, 15), "pipeline, ZeRO ");
  EXPECT_EQ(choice(1, 8, 0.9 * kStates, kSlow).substr(0, 27), "pipeline parallelism before");
  EXPECT_EQ(choice(4, 4, 0.9 * kStates, kFast).substr(0, 26), "ZeRO (no change of the mod");
  EXPECT_EQ(choice(4, 4, 10 * kStates, kSlow).substr(0, 13), "DDP or ZeRO-1");
  EXPECT_EQ(choice(4, 4, 0.9 * kStates, kSlow).substr(0, 15), "data x pipeline");
}

parallel::Estimate Fitting(const parallel::MeshSizes& mesh, parallel::Strategy strategy) {
  parallel::Estimate estimate;
  estimate.run = {.mesh = mesh, .strategy = strategy};
  estimate.fits = true;
  return estimate;
}

// Of meshes that all fit, the first one of the choice.
TEST(Advice, PassesOverMeshesOfOtherChoices) {
  using enum parallel::Strategy;
  const parallel::PlannedModel model = Planned(kLlama, 128, at::kFloat);
  const auto best = [&](const Cluster& cluster, const std::vector<parallel::Estimate>& ranked) {
    const auto advice = Advise(model, {}, {.samples = 64}, cluster, ranked);
    EXPECT_TRUE(advice.ok()) << advice.status();
    return advice->best.has_value()
               ? absl::StrCat(ToText(advice->best->run.mesh), " ", Name(advice->best->run.strategy))
               : "none";
  };
  EXPECT_EQ(best(ClusterOf(1, 8, 0.9 * kStates, kSlow), {Fitting({.tp = 8}, kDdp), Fitting({.pp = 8}, kDdp)}),
            "pp=8 ddp");
  EXPECT_EQ(
      best(ClusterOf(4, 4, 10 * kStates, kSlow),
           {Fitting({.pp = 16}, kDdp), Fitting({.dp_shard = 16}, kZero2), Fitting({.dp_shard = 16}, kZero1)}),
      "dp_shard=16 zero1");
  EXPECT_EQ(best(ClusterOf(4, 4, 0.9 * kStates, kSlow),
                 {Fitting({.dp_shard = 4, .tp = 4}, kZero1), Fitting({.pp = 4, .dp_shard = 4}, kFsdp),
                  Fitting({.pp = 4, .dp_shard = 4}, kZero1)}),
            "pp=4,dp_shard=4 zero1");
  EXPECT_EQ(best(ClusterOf(1, 1, 0.5 * kStates, kFast), {Fitting({}, kDdp)}), "none");
}

// Memory is blamed only where meshes of the choice were estimated and need too much.
TEST(Advice, SaysWhyThereIsNoMesh) {
  const auto why = [](const Cluster& cluster, const parallel::SearchOptions& options) {
    const parallel::PlannedModel model = Planned(kLlama, 128, at::kFloat);
    const auto ranked = Search(model, {}, options, cluster);
    EXPECT_TRUE(ranked.ok()) << ranked.status();
    const auto advice = Advise(model, {}, options, cluster, *ranked);
    EXPECT_TRUE(advice.ok()) << advice.status();
    EXPECT_EQ(advice->best.has_value(), advice->why_none.empty());
    return advice->why_none;
  };
  EXPECT_EQ(why(ClusterOf(1, 4, 10 * kStates, kFast), {.samples = 64}), "");
  EXPECT_EQ(why(ClusterOf(1, 4, 10 * kStates, kFast), {.samples = 6}),
            "No mesh of this choice can split the step: 6 samples; expected a multiple of its 4 data ranks.");
  EXPECT_EQ(why(ClusterOf(4, 4, 10 * kStates, kSlow),
                {.samples = 64, .strategies = {parallel::Strategy::kFsdp, parallel::Strategy::kZero2}}),
            "The search is limited to fsdp or zero2; a mesh of this choice has ddp or zero1.");
  // One sample has no micro-batches for two stages.
  EXPECT_EQ(
      why(ClusterOf(1, 8, 0.9 * kStates, kSlow), {.samples = 1}),
      "No mesh of this choice can split the step: 1 samples and 24 blocks; expected a multiple of its data "
      "ranks, with at least as many samples for each of them as stages, and as many blocks.");
  const std::string too_large = why(ClusterOf(4, 4, 0.01 * kStates, kFast), {.samples = 64});
  EXPECT_EQ(too_large.substr(0, 41), "No mesh of this choice fits: the smallest") << too_large;
  // 1 % of 16 bytes for each of 33.6 M parameters.
  EXPECT_EQ(too_large.substr(too_large.size() - 12), "of 0.005 GB.") << too_large;
}

// Also where no mesh has them.
TEST(Advice, ASearchIsLimitedToTheStrategiesThatAreAskedFor) {
  const parallel::PlannedModel model = Planned(kLlama, 128, at::kFloat);
  const parallel::SearchOptions options = {.samples = 64, .strategies = {parallel::Strategy::kFsdp}};
  const auto ranked = Search(model, {}, options, ClusterOf(1, 4, 10 * kStates, kFast));
  ASSERT_TRUE(ranked.ok());
  for (const parallel::Estimate& e : *ranked) EXPECT_EQ(e.run.strategy, parallel::Strategy::kFsdp);
  EXPECT_EQ(
      Search(model, {}, options, ClusterOf(1, 1, 10 * kStates, kFast)).status().message(),
      "no mesh of 1 ranks with fsdp can split 64 samples per step and this model; give a number of samples "
      "that more ranks divide, fewer ranks, or another strategy");
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
