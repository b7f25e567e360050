// Times against numbers worked out by hand: latency and bandwidth of each link, shares of the link between nodes, FLOPs,
// the bubble, ranks that share processors.
#include "parallel/plan/step_time.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "parallel/plan/mesh_search.h"
#include "parallel/plan/pass_memory.h"
#include "parallel/plan/traffic.h"
#include "tools/plan_parts/planned_models.h"

namespace plait::planning {
namespace {

using parallel::Axis;
using parallel::Call;
using parallel::Cluster;
using parallel::MeshSizes;
using parallel::PlannedRun;

constexpr double kEps = 1e-12;

Cluster TwoNodes() {
  Cluster cluster = {.nodes = 2, .ranks_per_node = 4, .processors_per_node = 4};
  cluster.memory_bytes = 1e12;
  cluster.flops = {{"float32", 2e12}};
  cluster.memory_bandwidth = 1e11;
  cluster.activation_bandwidth = 1e30;
  cluster.within_node = {1e10, 1e-6};
  cluster.between_nodes = {4e9, 1e-5};
  return cluster;
}

// 1,000 floats in all.
double Seconds(const MeshSizes& mesh, Axis axis, comm::Operation operation) {
  const parallel::Strategy strategy =
      mesh.dp_shard > 1 ? parallel::Strategy::kFsdp : parallel::Strategy::kDdp;
  return SecondsOf({axis, operation, 1000, comm::DataType::kFloat32}, {.mesh = mesh, .strategy = strategy},
                   TwoNodes());
}

TEST(StepTime, OfMessages) {
  using comm::Operation;
  // Within a node: log2(4) steps down and up, 2 P 3/4 bytes.
  EXPECT_NEAR(Seconds({.tp = 4}, Axis::kTp, Operation::kAllReduce), 4e-6 + 6000 / 1e10, kEps);
  EXPECT_NEAR(Seconds({.tp = 4}, Axis::kTp, Operation::kReduceScatter), 2e-6 + 3000 / 1e10, kEps);
  EXPECT_NEAR(Seconds({.cp = 4}, Axis::kCp, Operation::kAllToAll), 3e-6 + 3000 / 1e10, kEps);
  // One rank of each node: four such pairs share a link of 4 GB/s.
  EXPECT_NEAR(Seconds({.dp_replicate = 2, .tp = 4}, Axis::kReplicate, Operation::kAllReduce),
              2e-5 + 4000 / 1e9, kEps);
  EXPECT_NEAR(Seconds({.pp = 2, .tp = 4}, Axis::kPp, Operation::kSend), 1e-5 + 4000 / 1e9, kEps);
  // A ring through both nodes has the link for itself; it leaves each node once.
  EXPECT_NEAR(Seconds({.dp_shard = 8}, Axis::kShard, Operation::kReduceScatter), 3e-5 + 3500 / 4e9, kEps);
  // Two rings, of two ranks on each node.
  EXPECT_NEAR(Seconds({.dp_shard = 4, .tp = 2}, Axis::kShard, Operation::kReduceScatter), 2e-5 + 3000 / 2e9,
              kEps);
  EXPECT_EQ(Seconds({.tp = 4}, Axis::kCp, Operation::kAllReduce), 0);
  // Ranks along cp are ranks of dp_replicate too: eight, in one ring.
  EXPECT_NEAR(Seconds({.dp_replicate = 2, .cp = 4}, Axis::kReplicate, Operation::kAllReduce),
              6e-5 + 7000 / 4e9, kEps);
  // Both ends of a pipeline: of all ranks of one node, and of two nodes, where one pair, or two, use the link.
  EXPECT_NEAR(Seconds({.pp = 4}, Axis::kEnds, Operation::kAllReduce), 2e-6 + 4000 / 1e10, kEps);
  EXPECT_NEAR(Seconds({.pp = 8}, Axis::kEnds, Operation::kAllReduce), 2e-5 + 4000 / 4e9, kEps);
  EXPECT_NEAR(Seconds({.pp = 4, .tp = 2}, Axis::kEnds, Operation::kAllReduce), 2e-5 + 4000 / 2e9, kEps);
}

// Ranks 0 to 3 are on one node, 4 and 5 on the other.
TEST(StepTime, OfGroupsThatDoNotFillNodes) {
  const MeshSizes mesh = {.dp_replicate = 2, .tp = 3};
  // 3 to 5, alone, leave a node; 2 / 3 of the sum, twice, in whole bytes.
  EXPECT_NEAR(Seconds(mesh, Axis::kTp, comm::Operation::kAllReduce), 4e-5 + 5333 / 4e9, kEps);
  // 1 and 4, 2 and 5; 0 and 3 do not leave it.
  EXPECT_NEAR(Seconds(mesh, Axis::kReplicate, comm::Operation::kAllReduce), 2e-5 + 4000 / 2e9, kEps);
}

// Reduced in float32, gathered as it is.
TEST(StepTime, SumsOfHalfPrecisionAreAsLongAsThoseOfFloat32) {
  Cluster cluster = TwoNodes();
  cluster.within_node = {1e10, 0};
  const auto seconds = [&](comm::Operation operation, comm::DataType type) {
    return SecondsOf({Axis::kTp, operation, 1000, type}, {.mesh = {.tp = 4}}, cluster);
  };
  EXPECT_NEAR(seconds(comm::Operation::kAllReduce, comm::DataType::kFloat32), 6000 / 1e10, kEps);
  EXPECT_NEAR(seconds(comm::Operation::kAllReduce, comm::DataType::kBFloat16), 6000 / 1e10, kEps);
  EXPECT_NEAR(seconds(comm::Operation::kAllGather, comm::DataType::kBFloat16), 6000 / 1e10, kEps);
  EXPECT_NEAR(seconds(comm::Operation::kAllGather, comm::DataType::kFloat32), 12000 / 1e10, kEps);
}

const llama::LlamaOptions kLlama = {.vocab_size = 1000,
                                    .max_seq_len = 64,
                                    .dim = 64,
                                    .n_layers = 8,
                                    .n_heads = 8,
                                    .n_kv_heads = 8,
                                    .hidden = 100};

parallel::StepTime TimeOf(const PlannedRun& run, const Cluster& cluster) {
  const auto estimate = EstimateOf(Planned(kLlama, 64, at::kFloat), run, cluster);
  EXPECT_TRUE(estimate.ok()) << estimate.status();
  return estimate->time;
}

TEST(StepTime, OfProducts) {
  // Per block: 4 x 64 x 64 and 3 x 64 x 100 weights and two norms; the head 64,000 and the last norm (PaLM, appendix B).
  const double parameters = 8.0 * (4 * 64 * 64 + 3 * 6400 + 128) + 64000 + 64;
  const double flops = 64 * (6 * parameters + 12 * 8 * 64 * 64);
  EXPECT_NEAR(TimeOf({.micro_batches = 2, .micro_batch = 3}, TwoNodes()).products, 6 * flops / 2e12, 1e-9);
  EXPECT_NEAR(TimeOf({.mesh = {.tp = 4}}, TwoNodes()).products, flops / 4 / 2e12, 1e-10);
}

TEST(StepTime, OfTheOptimizer) {
  // Every parameter in multiples of 16: 6 reads, writes and the norm, of all or of a quarter.
  const double parameters = 8.0 * (4 * 64 * 64 + 3 * 6400 + 128) + 2 * 64000 + 64;
  EXPECT_NEAR(TimeOf({}, TwoNodes()).optimizer, 32 * parameters / 1e11, 1e-12);
  EXPECT_NEAR(TimeOf({.mesh = {.dp_shard = 4}, .strategy = parallel::Strategy::kZero1}, TwoNodes()).optimizer,
              8 * parameters / 1e11, 1e-12);
}

// Eight ranks on one node, whose products take no time.
Cluster WithoutProducts() {
  Cluster cluster = TwoNodes();
  cluster.nodes = 1;
  cluster.ranks_per_node = cluster.processors_per_node = 8;
  cluster.flops = {{"float32", 1e30}, {"bfloat16", 1e30}};
  cluster.messages_overlap = false;
  return cluster;
}

// A million parameters and, between two ranks per axis: 1.4 us for roots and 24 x 1.8 us for blocks to be gathered,
// 24 x 2.6 us and 8 x 3.6 us of reductions, 2.2 us of partial sums.
parallel::StateCalls SomeState() {
  using comm::DataType, comm::Operation;
  parallel::StateCalls state;
  state.parameters = 1'000'000;
  state.root_gathers = {{Axis::kShard, Operation::kAllGather, 1000, DataType::kFloat32}};
  state.block_gathers = {{Axis::kShard, Operation::kAllGather, 2000, DataType::kFloat32, 24}};
  state.reductions = {{Axis::kShard, Operation::kReduceScatter, 8000, DataType::kFloat32, 24},
                      {Axis::kReplicate, Operation::kAllReduce, 4000, DataType::kFloat32, 8}};
  state.partial_sums = {{Axis::kTp, Operation::kAllReduce, 500, DataType::kFloat32}};
  return state;
}
constexpr double kRoots = 1.4e-6, kBlocks = 24 * 1.8e-6, kShards = 24 * 2.6e-6, kReplicas = 8 * 3.6e-6;

// Of kLlama's eight blocks with SomeState.
parallel::StepTime TimeOfSomeState(const PlannedRun& run, const Cluster& cluster,
                                   const parallel::PassBytes& bytes = {}) {
  const auto plan = parallel::StepPlan::Make(Planned(kLlama, 64, at::kFloat), run);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return parallel::TimeOf(*plan, bytes, {SomeState()}, /*pipeline_seconds=*/0, cluster);
}

TEST(StepTime, OfTheOptimizerByItsKindAndTypes) {
  const auto seconds = [](parallel::OptimizerKind kind, at::ScalarType type) {
    return TimeOfSomeState({.compute_type = type, .optimizer = kind}, WithoutProducts()).optimizer;
  };
  // Transfers of four bytes; mixed precision: two more, of two bytes.
  EXPECT_NEAR(seconds(parallel::OptimizerKind::kAdamW, at::kFloat), 8 * 4e6 / 1e11, kEps);
  EXPECT_NEAR(seconds(parallel::OptimizerKind::kSgd, at::kFloat), 4 * 4e6 / 1e11, kEps);
  EXPECT_NEAR(seconds(parallel::OptimizerKind::kSgd, at::kBFloat16), (4 * 4e6 + 2 * 2e6) / 1e11, kEps);
}

TEST(StepTime, OfCallsAndCopiesOfGradientsInEachMicroBatch) {
  Cluster cluster = WithoutProducts();
  cluster.block_seconds = 1e-5;
  const parallel::StepTime time = TimeOfSomeState({.micro_batches = 3}, cluster);
  EXPECT_NEAR(time.calls, 3 * 8 * 1e-5, kEps);
  // Read and written, four bytes each.
  EXPECT_NEAR(time.gradients, 3 * 2 * 4e6 / 1e11, kEps);
}

TEST(StepTime, OfActivationsByTheirType) {
  Cluster cluster = WithoutProducts();
  cluster.activation_bandwidth = 1e9;
  cluster.activation_bandwidths = {{"bfloat16", 4e9}};
  parallel::PassBytes bytes = {};
  bytes.prologue.kept = 1000;
  bytes.block.kept = 2000;
  bytes.epilogue.kept = 3000;
  const auto seconds = [&](at::ScalarType type) {
    return TimeOfSomeState({.micro_batches = 3, .compute_type = type}, cluster, bytes).activations;
  };
  EXPECT_NEAR(seconds(at::kFloat), 3 * (1000 + 8 * 2000 + 3000) / 1e9, kEps);
  EXPECT_NEAR(seconds(at::kBFloat16), 3 * (1000 + 8 * 2000 + 3000) / 4e9, kEps);
}

TEST(StepTime, WithoutOverlapAllMessagesAreExposed) {
  const PlannedRun run = {.mesh = {.dp_replicate = 2, .dp_shard = 2, .tp = 2},
                          .strategy = parallel::Strategy::kFsdp,
                          .micro_batches = 3};
  const parallel::StepTime time = TimeOfSomeState(run, WithoutProducts());
  EXPECT_NEAR(time.gathers, kRoots + kBlocks, kEps);
  EXPECT_NEAR(time.reductions, kShards + kReplicas, kEps);
  EXPECT_NEAR(time.partial_sums, 2.2e-6, kEps);
}

// Each of three passes takes 0.8 us, two thirds of it backward; or so long that only what has nothing beside it is
// exposed.
TEST(StepTime, PassesHideTheirMessages) {
  Cluster cluster = WithoutProducts();
  cluster.messages_overlap = true;
  for (const bool each : {false, true}) {
    const auto time = [&](parallel::Strategy strategy, double block_seconds) {
      cluster.block_seconds = block_seconds;
      return TimeOfSomeState({.mesh = {.dp_replicate = 2, .dp_shard = 2},
                              .strategy = strategy,
                              .micro_batches = 3,
                              .reduce_each_micro_batch = each},
                             cluster);
    };
    for (const parallel::Strategy strategy : {parallel::Strategy::kZero2, parallel::Strategy::kFsdp}) {
      const double backward = 8e-7 * 2 / 3;
      const parallel::StepTime some = time(strategy, 1e-7), all = time(strategy, 1);
      EXPECT_NEAR(some.reductions, kShards + kReplicas - (each ? 3 : 1) * backward, kEps) << each;
      EXPECT_NEAR(all.reductions, (kShards + kReplicas) / 32, kEps) << each;
      EXPECT_NEAR(all.gathers, kRoots + kBlocks / 24, kEps) << each;
    }
    // Blocks are gathered in each pass, or once, before the first forward.
    EXPECT_NEAR(time(parallel::Strategy::kFsdp, 1e-7).gathers, kRoots + kBlocks - 3 * 8e-7, kEps);
    EXPECT_NEAR(time(parallel::Strategy::kZero2, 1e-7).gathers, kRoots + kBlocks - 8e-7 / 3, kEps);
  }
}

// Stages without messages: what a step adds to a rank's own work is the bubble, (S - 1) / M of it in 1F1B.
TEST(StepTime, OfTheBubble) {
  Cluster cluster = TwoNodes();
  cluster.within_node = cluster.between_nodes = {1e30, 0};
  llama::LlamaOptions even = kLlama;  // a head that weighs nothing
  even.vocab_size = 1;
  const auto estimate =
      EstimateOf(Planned(even, 64, at::kFloat), {.mesh = {.pp = 4}, .micro_batches = 8}, cluster);
  ASSERT_TRUE(estimate.ok());
  const auto& time = estimate->time;
  EXPECT_NEAR(time.pipeline / time.products, 3.0 / 8, 2e-3);
}

TEST(StepTime, RanksThatShareProcessorsTakeTheirWorkTogether) {
  Cluster cluster = TwoNodes();
  cluster.nodes = 1;
  cluster.within_node = cluster.between_nodes = {1e30, 0};
  const PlannedRun run = {.mesh = {.dp_replicate = 4}};
  const double alone = TimeOf(run, cluster).total();
  cluster.processors_per_node = 2;
  EXPECT_NEAR(TimeOf(run, cluster).total() / alone, 2, 1e-9);
}

TEST(StepTime, HiddenMessagesCostNothing) {
  Cluster cluster = TwoNodes();
  cluster.within_node = {1e13, 0};
  const PlannedRun run = {.mesh = {.dp_shard = 4}, .strategy = parallel::Strategy::kFsdp};
  const parallel::StepTime hidden = TimeOf(run, cluster);
  cluster.messages_overlap = false;
  const parallel::StepTime exposed = TimeOf(run, cluster);
  EXPECT_LT(hidden.gathers + hidden.reductions, exposed.gathers + exposed.reductions);
  EXPECT_GT(hidden.gathers, 0);  // of the roots and the first block
  EXPECT_EQ(hidden.products, exposed.products);
}

// Behind a slow attention: of a ring's three messages, keys forward, keys backward and their gradients, the last is exposed,
// with split layers beside it too.
TEST(StepTime, RingsHideTheirKeys) {
  Cluster cluster = TwoNodes();
  cluster.flops["float32"] = 1e6;
  for (const int tp : {1, 2}) {
    const PlannedRun run = {.mesh = {.cp = 2, .tp = tp}};
    cluster.messages_overlap = true;
    const double hidden = TimeOf(run, cluster).cp;
    cluster.messages_overlap = false;
    EXPECT_NEAR(hidden / TimeOf(run, cluster).cp, 1.0 / 3, 1e-9) << tp;
  }
}

TEST(MeshSearch, RefusesAStepWithoutSamples) {
  const auto ranked = Search(Planned(kLlama, 64, at::kFloat), {}, {.samples = 0}, TwoNodes());
  EXPECT_EQ(ranked.status().code(), absl::StatusCode::kInvalidArgument);
}

// The whole list of a small cluster: each mesh once per strategy and micro-batch, the quickest that fits first.
TEST(MeshSearch, RanksWhatFitsByTimeAndTheRestByMemory) {
  Cluster cluster = TwoNodes();
  cluster.memory_bytes = 16e6;
  const auto ranked = Search(Planned(kLlama, 64, at::kFloat), {}, {.samples = 32}, cluster);
  ASSERT_TRUE(ranked.ok());
  bool fits = true;
  for (std::size_t i = 0; i < ranked->size(); ++i) {
    const parallel::Estimate& e = (*ranked)[i];
    EXPECT_EQ(e.run.mesh.ranks(), 8);
    EXPECT_EQ(e.samples(), 32);
    EXPECT_EQ(e.fits, e.memory.total_bytes() <= 16'000'000);
    EXPECT_TRUE(fits || !e.fits) << "one that fits behind one that does not";
    fits = e.fits;
    if (i == 0 || (*ranked)[i - 1].fits != e.fits) continue;
    const parallel::Estimate& before = (*ranked)[i - 1];
    EXPECT_TRUE(e.fits ? before.time.total() <= e.time.total()
                       : before.memory.total_bytes() <= e.memory.total_bytes())
        << ToText(before.run.mesh) << " before " << ToText(e.run.mesh);
  }
  EXPECT_TRUE((*ranked)[0].fits);
  EXPECT_FALSE(ranked->back().fits);
}

// More micro-batches than an int holds: those of one sample are left out.
TEST(MeshSearch, NumbersOfSamplesBeyond32Bits) {
  constexpr std::int64_t kSamples = (std::int64_t{1} << 35) + 8;
  const auto ranked = Search(Planned(kLlama, 64, at::kFloat), {}, {.samples = kSamples}, TwoNodes());
  ASSERT_TRUE(ranked.ok()) << ranked.status();
  for (const parallel::Estimate& e : *ranked) EXPECT_EQ(e.samples(), kSamples);
}

// The search tells long steps by short ones; a plan of the mesh itself runs through the whole schedule.
TEST(MeshSearch, ManyMicroBatchesAreToldByFew) {
  const parallel::PlannedModel model = Planned(kLlama, 64, at::kFloat);
  const auto ranked = Search(model, {}, {.samples = 512}, TwoNodes());
  ASSERT_TRUE(ranked.ok());
  int compared = 0;
  for (const parallel::Estimate& e : *ranked) {
    if (e.run.micro_batches <= 4 * e.run.mesh.pp || e.run.micro_batches > 64) continue;
    const auto exact = EstimateOf(model, e.run, TwoNodes());
    ASSERT_TRUE(exact.ok());
    EXPECT_NEAR(e.time.total() / exact->time.total(), 1, 0.01)
        << ToText(e.run.mesh) << " " << e.run.micro_batches;
    EXPECT_EQ(e.memory.total_bytes(), exact->memory.total_bytes()) << ToText(e.run.mesh);
    ++compared;
  }
  EXPECT_GT(compared, 10);
}

// 18 micro-batches of 4 stages have no interleaved schedule, although the short steps that would tell them have one.
TEST(MeshSearch, LeavesOutStepsWithoutASchedule) {
  const parallel::PlannedModel model = Planned(kLlama, 64, at::kFloat);
  const PlannedRun base = {.schedule = parallel::ScheduleKind::kInterleaved};
  const auto ranked = Search(model, base, {.samples = 36}, TwoNodes());
  ASSERT_TRUE(ranked.ok());
  for (const parallel::Estimate& e : *ranked) {
    EXPECT_TRUE(EstimateOf(model, e.run, TwoNodes()).ok())
        << ToText(e.run.mesh) << " " << e.run.micro_batches;
  }
}

}  // namespace
}  // namespace plait::planning
