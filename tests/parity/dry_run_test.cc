// A dry run against the run itself: calls and bytes of each axis and operation are equal on every rank, and the most
// that tensors take is what LibTorch's allocator was asked for.
#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/device_mesh.h"
#include "comm/testing/world.h"
#include "models/gpt/gpt.h"
#include "models/llama/llama.h"
#include "models/odenet/odenet.h"
#include "models/vit/vit.h"
#include "tests/parity/counting_allocator.h"
#include "tools/training/dry_run.h"
#include "tools/training/sharded_model.h"

namespace plait::parity {
namespace {

using comm::testing::World;
using training::DryRunModel;
using training::DryRunRank;

constexpr std::int64_t kSamples = 4, kSequence = 48, kVocabulary = 257;

enum class Kind {
  kGpt,
  kDroppingGpt,
  kLlama,
  kVit,
  kConvolutions,
  kDense,
  kExperts,
  kReplicas,
  kFewReplicas
};
constexpr const char* kNames[] = {"gpt",
                                  "gpt with dropout",
                                  "llama",
                                  "vit",
                                  "ODE network of convolutions",
                                  "dense ODE network",
                                  "gpt with experts",
                                  "gpt with replicas of experts",
                                  "gpt with few replicas"};

struct MeshSettings final : training::Settings {
  void Bind(training::SettingsTable&) override {}
  absl::Status Check(const std::vector<comm::MeshAxis>&) const override { return absl::OkStatus(); }
  std::vector<std::string> mesh_axes() const override { return {"pp", "cp", "tp", "ep"}; }
};

struct Case {
  Kind kind;
  std::string mesh, strategy = "ddp";
  int micro_batches = 1;
  bool sequence_parallel = false;
  std::string schedule = "1f1b", checkpointing = "none";
  bool reduce_each_micro_batch = false;
  std::string context_attention = "ring";
  std::int64_t test_samples = 0;  // of a test's batch
};

std::string TextOf(const Case& c) {
  return absl::StrCat(kNames[static_cast<int>(c.kind)], " ", c.mesh, " ", c.strategy, " ", c.micro_batches,
                      " ", c.sequence_parallel ? "sp " : "", c.schedule, " ", c.checkpointing, " ",
                      c.context_attention, c.reduce_each_micro_batch ? " each" : "",
                      c.test_samples > 0 ? " test" : "");
}

std::shared_ptr<models::BlockModel> MakeModel(Kind kind) {
  const at::TensorOptions meta = at::TensorOptions(at::kFloat).device(at::kMeta);
  if (kind == Kind::kLlama) {
    return std::make_shared<llama::Llama>(llama::LlamaOptions{.vocab_size = kVocabulary,
                                                              .max_seq_len = kSequence,
                                                              .dim = 64,
                                                              .n_layers = 8,
                                                              .n_heads = 8,
                                                              .n_kv_heads = 4,
                                                              .hidden = 175},
                                          meta);
  }
  if (kind == Kind::kVit) {
    return std::make_shared<vit::Vit>(vit::VitOptions{.image_size = 24,
                                                      .patch_size = 4,
                                                      .channels = 3,
                                                      .dim = 64,
                                                      .depth = 8,
                                                      .heads = 8,
                                                      .head_dim = 8,
                                                      .mlp_dim = 251,
                                                      .classes = 10},
                                      meta);
  }
  if (kind == Kind::kConvolutions || kind == Kind::kDense) {
    const bool dense = kind == Kind::kDense;
    return std::make_shared<odenet::OdeNet>(
        odenet::OdeNetOptions{
            .form = dense ? odenet::Form::kDense : odenet::Form::kConv2d,
            .sample = dense ? std::vector<std::int64_t>{40} : std::vector<std::int64_t>{40, 36},
            .channels = dense ? 64 : 12,
            .layers = 8,
            // Own kernels of convolutions and relu (models/odenet/own_step.h) keep less than the plan says.
            .activation = dense ? odenet::Activation::kRelu : odenet::Activation::kTanh,
            .hidden = 32,
            .classes = 10},
        meta);
  }
  moe::MoeOptions experts = {.hidden = 256};
  if (kind >= Kind::kExperts) experts.gate.experts = 16;
  // Takes all slots.
  if (kind == Kind::kReplicas) experts.planner = {.policy = moe::PlacementPolicy::kEplb, .replica_slots = 6};
  // None where experts have equally many rows.
  if (kind == Kind::kFewReplicas)
    experts.planner = {.policy = moe::PlacementPolicy::kBalanced, .replica_slots = 6};
  return std::make_shared<gpt::Gpt>(gpt::GptOptions{.vocab_size = kVocabulary,
                                                    .block_size = kSequence,
                                                    .n_layer = 8,
                                                    .n_head = 8,
                                                    .n_embd = 64,
                                                    .dropout = kind == Kind::kDroppingGpt ? 0.1 : 0,
                                                    .bias = true,
                                                    .moe = experts},
                                    meta);
}

models::Batch MakeBatch(Kind kind, at::Device device, std::int64_t samples) {
  const auto tokens = at::TensorOptions(at::kLong).device(device);
  if (kind == Kind::kVit) {
    return {at::randn({samples, 3, 24, 24}, at::TensorOptions(at::kFloat)).to(device),
            at::randint(10, {samples}, tokens)};
  }
  if (kind == Kind::kConvolutions || kind == Kind::kDense) {
    const std::vector<std::int64_t> sizes = kind == Kind::kDense
                                                ? std::vector<std::int64_t>{samples, 40}
                                                : std::vector<std::int64_t>{samples, 1, 40, 36};
    return {at::randn(sizes, at::TensorOptions(at::kFloat)).to(device), at::randint(10, {samples}, tokens)};
  }
  return {at::randint(kVocabulary, {samples, kSequence}, tokens),
          at::randint(kVocabulary, {samples, kSequence}, tokens)};
}

MeshSettings SettingsOf(const Case& c) {
  MeshSettings settings;
  settings.strategy = c.strategy;
  settings.mesh = c.mesh;
  settings.sequence_parallel = c.sequence_parallel;
  settings.gradient_accumulation_steps = c.micro_batches;
  settings.pipeline_schedule = c.schedule;
  settings.activation_checkpointing = c.checkpointing;
  settings.reduce_each_micro_batch = c.reduce_each_micro_batch;
  settings.batch_size = kSamples;
  settings.context_attention = c.context_attention;
  return settings;
}

DryRunModel ModelOn(const Case& c, at::Device device, std::int64_t samples = kSamples) {
  DryRunModel made = {.model = MakeModel(c.kind), .trained = {}, .batch = MakeBatch(c.kind, device, samples)};
  made.trained.model = made.model.get();
  made.trained.clip_norm = 1;
  made.trained.evaluation_samples = c.test_samples;
  const bool has_no_sequences = c.kind >= Kind::kVit && c.kind <= Kind::kDense;
  made.trained.attention_heads = has_no_sequences ? 0 : 8;
  return made;
}

// Of this rank in the second step.
struct Measured {
  std::int64_t peak_bytes = 0;  // or of a test after it, if that is higher
  std::int64_t engine_bytes = 0, moment_bytes = 0;
  comm::Stats traffic;
};

// The batch itself is no part of a plan.
std::int64_t PeakOfTest(const Case& c, training::ShardedModel& sharded) {
  CountingAllocator& tensors = CountingAllocator::Install();
  const models::Batch batch = MakeBatch(c.kind, at::kCPU, c.test_samples);
  sharded.model().SetTraining(false);
  tensors.ForgetPeak();
  sharded.Output(batch);
  return tensors.peak_bytes() - static_cast<std::int64_t>(batch.inputs.nbytes() + batch.targets.nbytes());
}

Measured RealRun(const Case& c, const MeshSettings& settings, const comm::DeviceMesh& mesh) {
  CountingAllocator& tensors = CountingAllocator::Install();
  const DryRunModel made = ModelOn(c, at::kCPU);
  EXPECT_TRUE(training::SplitLayers(settings, mesh, made.trained).ok());
  const std::int64_t before = tensors.live_bytes();
  const auto sharded = *training::ShardedModel::Create(settings, mesh, at::kCPU, made.trained);
  Measured measured;
  for (int step = 0; step < 2; ++step) {
    measured.traffic = mesh.world().stats();
    tensors.ForgetPeak();
    const models::Batch batch = sharded->OnDevice(made.batch);
    sharded->RunMicroBatches([&](int) { return parallel::PipelineMicroBatch{.batch = batch}; });
    sharded->Step({.clip_norm = made.trained.clip_norm});
  }
  measured.peak_bytes = tensors.peak_bytes() - before;
  comm::Stats now = mesh.world().stats();
  for (auto& [axis, operations] : now) {
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const comm::OperationStats& then = measured.traffic[axis][i];
      operations[i].calls -= then.calls;
      operations[i].payload_bytes -= then.payload_bytes;
      operations[i].wire_bytes -= then.wire_bytes;
    }
  }
  measured.engine_bytes = sharded->engine().peak_bytes();
  measured.moment_bytes = sharded->optimizer().moment_bytes();
  if (c.test_samples > 0) {
    measured.peak_bytes = std::max(measured.peak_bytes, PeakOfTest(c, *sharded) - before);
  }
  sharded->WaitForParameters();
  measured.traffic = std::move(now);
  return measured;
}

// "axis operation calls payload wire" of what was called.
std::string TextOf(const comm::Stats& stats) {
  std::string text;
  for (const auto& [axis, operations] : stats) {
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const comm::OperationStats& o = operations[i];
      if (o.calls == 0) continue;
      absl::StrAppend(&text, axis, " ", comm::Name(static_cast<comm::Operation>(i)), " ", o.calls, " ",
                      o.payload_bytes, " ", o.wire_bytes, "\n");
    }
  }
  return text;
}

void ExpectDryRunIsTheRun(const Case& c) {
  SCOPED_TRACE(TextOf(c));
  const MeshSettings settings = SettingsOf(c);
  const std::vector<comm::MeshAxis> axes = *settings.Axes(World().size());
  const comm::DeviceMesh mesh = *comm::DeviceMesh::Create(World(), axes);
  const Measured real = RealRun(c, settings, mesh);
  const training::MakeDryRunModel make = [&](std::int64_t samples) -> absl::StatusOr<DryRunModel> {
    return ModelOn(c, at::kMeta, samples);
  };
  const auto dry = training::DryRun(settings, axes, make);
  ASSERT_TRUE(dry.ok()) << dry.status();
  int stands_for = 0;
  for (const DryRunRank& rank : dry->ranks) stands_for += rank.alike;
  EXPECT_EQ(stands_for, World().size());
  const int of = training::RankToRun(axes, settings.expert_ranks(), World().rank());
  const auto found =
      std::find_if(dry->ranks.begin(), dry->ranks.end(), [of](const auto& r) { return r.rank == of; });
  ASSERT_NE(found, dry->ranks.end());
  EXPECT_EQ(TextOf(found->traffic), TextOf(real.traffic));
  const auto peak = static_cast<double>(real.peak_bytes);
  const DryRunModel split = ModelOn(c, at::kMeta);
  EXPECT_TRUE(training::SplitLayers(settings, mesh, split.trained).ok());
  const auto plan = training::PlanByDryRun(settings, mesh, at::kCPU, split.trained, make);
  ASSERT_TRUE(plan.ok()) << plan.status();
  if (c.test_samples > 0) EXPECT_EQ(plan->activation_bytes, plan->request.evaluation_bytes);
  const auto planned = static_cast<double>(plan->total_bytes());
  EXPECT_LE(planned, 1.05 * peak);
  EXPECT_GE(planned, 0.95 * peak);
  EXPECT_LE(static_cast<double>(found->peak_bytes()), 1.05 * peak);
  EXPECT_GE(static_cast<double>(found->peak_bytes()), 0.95 * peak);
}

std::vector<Case> CasesOf(Kind kind) {
  const int n = World().size();
  if (n == 2) {
    return {{kind, "tp=2"},
            {kind, "tp=2", "ddp", 1, true},
            {kind, "dp_replicate=2"},
            {kind, "dp_shard=2", "zero1", 2},
            {kind, "dp_shard=2", "zero2", 2, false, "1f1b", "full", true},
            {kind, "dp_shard=2", "fsdp", 2},
            {kind, "pp=2", "ddp", 4},
            {kind, "pp=2", "fsdp", 4, false, "gpipe", "full"},
            {kind, "pp=2", "ddp", 4, false, "interleaved"},
            {kind, "pp=2", "ddp", 4, false, "zb-h1"},
            {kind, "pp=2", "ddp", 4, false, "zbv"},
            {kind, "cp=2"},
            {kind, "cp=2", "fsdp", 1, false, "1f1b", "none", false, "ulysses"}};
  }
  if (n == 4) {
    return {{kind, "tp=4", "ddp", 1, true},
            {kind, "pp=4", "ddp", 8},
            {kind, "pp=2,tp=2", "ddp", 4, true},
            {kind, "dp_shard=2,tp=2", "fsdp", 1, true},
            {kind, "dp_replicate=2,dp_shard=2", "fsdp"},
            {kind, "cp=4"},
            {kind, "cp=2,tp=2", "zero2", 1, true}};
  }
  return {{kind, "pp=2,dp_replicate=2,tp=2", "ddp", 4},
          {kind, "pp=2,dp_shard=2,tp=2", "fsdp", 4, true},
          {kind, "pp=2,dp_shard=2,tp=2", "zero1", 4, true},
          {kind, "dp_replicate=2,dp_shard=2,tp=2", "fsdp", 1, true},
          {kind, "dp_shard=2,cp=2,tp=2", "fsdp", 1, true}};
}

void ExpectDryRunsAreRuns(Kind kind) {
  for (const Case& c : CasesOf(kind)) {
    const bool splits_sequences = c.mesh.find("cp") != std::string::npos;
    if (splits_sequences && kind == Kind::kVit) continue;
    ExpectDryRunIsTheRun(c);
  }
}

// How many rows a rank gets follows from the data: a plan assumes equally many. Experts take most of the memory, and are
// sharded over other ranks than the rest.
void ExpectPlansAreRuns(Kind kind, double tolerance) {
  const int n = World().size();
  const std::string shard = absl::StrCat("dp_shard=", n, ",ep="),
                    replicate = absl::StrCat("dp_replicate=", n, ",ep=");
  for (const auto& [mesh, strategy] :
       std::vector<std::pair<std::string, std::string>>{{absl::StrCat(shard, n), "fsdp"},
                                                        {shard + "2", "fsdp"},
                                                        {absl::StrCat(replicate, n), "ddp"},
                                                        {shard + "1", "zero1"}}) {
    const Case c = {kind, mesh, strategy};
    SCOPED_TRACE(TextOf(c));
    const MeshSettings settings = SettingsOf(c);
    const comm::DeviceMesh real = *comm::DeviceMesh::Create(World(), *settings.Axes(n));
    auto peak = static_cast<double>(RealRun(c, settings, real).peak_bytes);
    const DryRunModel split = ModelOn(c, at::kMeta);
    EXPECT_TRUE(training::SplitLayers(settings, real, split.trained).ok());
    const auto make = [&](std::int64_t samples) -> absl::StatusOr<DryRunModel> {
      return ModelOn(c, at::kMeta, samples);
    };
    const auto plan = training::PlanByDryRun(settings, real, at::kCPU, split.trained, make);
    ASSERT_TRUE(plan.ok()) << plan.status();
    // In the mean of the ranks: what one has more, another has less.
    auto planned = static_cast<double>(plan->total_bytes());
    World().AllReduce(comm::BufferOf(absl::MakeSpan(&peak, 1)));
    World().AllReduce(comm::BufferOf(absl::MakeSpan(&planned, 1)));
    EXPECT_LE(planned, (1 + tolerance) * peak);
    EXPECT_GE(planned, (1 - tolerance) * peak);
  }
}

TEST(DryRun, PlansTheMemoryOfExperts) { ExpectPlansAreRuns(Kind::kExperts, 0.1); }
// Moments in files, whose buffers are those of the largest unit: of experts, which a rank shares with fewer others.
TEST(DryRun, PlansTheStatesOfExpertsInFiles) {
  const int n = World().size();
  for (const int ep : {2, n}) {
    const Case c = {Kind::kExperts, absl::StrCat("dp_shard=", n, ",ep=", ep), "fsdp"};
    SCOPED_TRACE(TextOf(c));
    MeshSettings settings = SettingsOf(c);
    settings.offload = ::testing::TempDir();
    const comm::DeviceMesh mesh = *comm::DeviceMesh::Create(World(), *settings.Axes(n));
    const Measured real = RealRun(c, settings, mesh);
    const DryRunModel split = ModelOn(c, at::kMeta);
    EXPECT_TRUE(training::SplitLayers(settings, mesh, split.trained).ok());
    const auto plan = training::PlanByDryRun(
        settings, mesh, at::kCPU, split.trained,
        [&](std::int64_t samples) -> absl::StatusOr<DryRunModel> { return ModelOn(c, at::kMeta, samples); });
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->moment_bytes, real.moment_bytes);
    EXPECT_GE(plan->buffer_bytes(), real.engine_bytes);
  }
}
// With ranks of ep alone, weights that were fetched take 6 / home experts of what parameters take.
TEST(DryRun, PlansTheMemoryOfReplicas) { ExpectPlansAreRuns(Kind::kReplicas, 0.1); }
// Data decide how many slots a policy takes: plans take all.
TEST(DryRun, PlansTheMemoryOfEverySlot) {
  const int n = World().size();
  std::vector<std::int64_t> planned;
  for (const Kind kind : {Kind::kReplicas, Kind::kFewReplicas}) {
    const Case c = {kind, absl::StrCat("dp_replicate=", n, ",ep=", n), "ddp"};
    const MeshSettings settings = SettingsOf(c);
    const auto dry = training::DryRun(
        settings, *settings.Axes(n),
        [&](std::int64_t samples) -> absl::StatusOr<DryRunModel> { return ModelOn(c, at::kMeta, samples); });
    ASSERT_TRUE(dry.ok()) << dry.status();
    planned.push_back(dry->ranks[0].peak_bytes());
  }
  EXPECT_EQ(planned[0], planned[1]);
}
TEST(DryRun, OfAGptIsTheRun) { ExpectDryRunsAreRuns(Kind::kGpt); }
TEST(DryRun, OfALlamaIsTheRun) { ExpectDryRunsAreRuns(Kind::kLlama); }
TEST(DryRun, OfAVitIsTheRun) { ExpectDryRunsAreRuns(Kind::kVit); }
// Of many times a micro-batch's samples; between two stages their shapes are not those of steps.
TEST(DryRun, OfATestIsTheTest) {
  const std::string n = absl::StrCat(World().size()), half = absl::StrCat(World().size() / 2);
  for (const Case& of_steps :
       {Case{Kind::kVit, "dp_shard=" + n, "fsdp"}, Case{Kind::kVit, "pp=2,dp_replicate=" + half, "ddp", 4}}) {
    Case c = of_steps;
    c.test_samples = 256;
    ExpectDryRunIsTheRun(c);
  }
}
// Two stages: a rank with one layer takes little beside what LibTorch's convolutions need for a moment, which no plan has.
TEST(DryRun, OfAnOdeNetworkIsTheRun) {
  const std::string n = absl::StrCat(World().size()), half = absl::StrCat(World().size() / 2);
  for (const Kind kind : {Kind::kConvolutions, Kind::kDense}) {
    ExpectDryRunIsTheRun({kind, "dp_replicate=" + n});
    ExpectDryRunIsTheRun({kind, "dp_shard=" + n, "fsdp", 2});
    ExpectDryRunIsTheRun({kind, "pp=2,dp_replicate=" + half, "ddp", 8});
  }
}
// A limit that one rank's plan exceeds and that of split states, layers and stages keeps.
TEST(DryRun, OneRankIsRefusedAndAllAreNot) {
  const int n = World().size();
  const Case c = {Kind::kGpt,
                  n == 8   ? "pp=2,dp_shard=2,tp=2"
                  : n == 4 ? "pp=2,tp=2"
                           : "dp_shard=2",
                  "fsdp", 2};
  const MeshSettings settings = SettingsOf(c);
  const training::MakeDryRunModel make = [&](std::int64_t samples) -> absl::StatusOr<DryRunModel> {
    return ModelOn(c, at::kMeta, samples);
  };
  MeshSettings of_one = SettingsOf({Kind::kGpt, "", "ddp", 2});
  of_one.batch_size = kSamples * n;
  const auto one = training::DryRun(of_one, *of_one.Axes(1), make);
  const std::vector<comm::MeshAxis> axes = *settings.Axes(n);
  const comm::DeviceMesh mesh = *comm::DeviceMesh::Create(World(), axes);
  const auto all = training::DryRun(settings, axes, make);
  ASSERT_TRUE(one.ok() && all.ok()) << one.status() << all.status();
  const parallel::NodeMemory limit = {.bytes = one->ranks[0].peak_bytes() - 1,
                                      .limited_by = "--memory-limit"};
  EXPECT_EQ(training::CheckFits(*one, limit).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(training::CheckFits(*all, limit).ok());
  EXPECT_LE(RealRun(c, settings, mesh).peak_bytes, limit.bytes);
}

// Of two stages, two shards, three parts of sequences and three of layers, the last axis fastest.
TEST(DryRun, RunsTheFirstAndTheLastRankOfCpAndTp) {
  const std::vector<comm::MeshAxis> axes = {{"pp", 2}, {"dp_shard", 2}, {"cp", 3}, {"tp", 3}};
  const auto rank = [](int pp, int shard, int cp, int tp) { return ((pp * 2 + shard) * 3 + cp) * 3 + tp; };
  for (int pp = 0; pp < 2; ++pp) {
    for (int shard = 0; shard < 2; ++shard) {
      const auto run = [&](int cp, int tp) { return training::RankToRun(axes, 1, rank(pp, shard, cp, tp)); };
      EXPECT_EQ(run(0, 0), rank(pp, 0, 0, 0));
      EXPECT_EQ(run(1, 1), rank(pp, 0, 0, 0));
      EXPECT_EQ(run(2, 1), rank(pp, 0, 2, 0));
      EXPECT_EQ(run(1, 2), rank(pp, 0, 0, 2));
      EXPECT_EQ(run(2, 2), rank(pp, 0, 2, 2));
    }
  }
}

// Five experts on four ranks: only the last of each group has two.
TEST(DryRun, RunsTheRankWithTheMostExperts) {
  const std::vector<comm::MeshAxis> axes = {{"pp", 2}, {"dp_replicate", 2}, {"dp_shard", 4}};
  for (int rank = 0; rank < 16; ++rank) {
    EXPECT_EQ(training::RankToRun(axes, /*expert_ranks=*/4, rank), rank < 8 ? 7 : 15);
    EXPECT_EQ(training::RankToRun(axes, /*expert_ranks=*/1, rank), rank < 8 ? 0 : 8);
  }
}

TEST(DryRun, FitsWhereItsLargestRankFits) {
  training::DryRunResult result = {.axes = {{"pp", 3}}, .ranks = {}};
  for (const std::int64_t bytes : {10, 30, 20}) {
    DryRunRank one;
    one.rank = static_cast<int>(result.ranks.size());
    one.activation_bytes = bytes;
    result.ranks.push_back(one);
  }
  result.ranks[2].evaluation_bytes = 29;
  EXPECT_TRUE(training::CheckFits(result, {.bytes = 30, .limited_by = "x"}).ok());
  const absl::Status refused = training::CheckFits(result, {.bytes = 29, .limited_by = "x"});
  EXPECT_EQ(refused.message().substr(0, 12), "rank 1 needs");
  result.ranks[2].evaluation_bytes = 31;
  EXPECT_EQ(training::CheckFits(result, {.bytes = 30, .limited_by = "x"}).message().substr(0, 12),
            "rank 2 needs");
}

TEST(DryRun, OfDropoutIsTheRun) {
  const std::string all = absl::StrCat("tp=", World().size());
  ExpectDryRunIsTheRun({Kind::kDroppingGpt, all, "ddp", 2, true});
  ExpectDryRunIsTheRun({Kind::kDroppingGpt, absl::StrCat("cp=", World().size()), "ddp"});
}

}  // namespace
}  // namespace plait::parity
