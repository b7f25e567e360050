// Planned traffic of each rank against comm's counters: every axis and operation, to the call and byte, in the second
// step of small models (the first step learns the order of units and exchanges shapes).
#include <ATen/Context.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/device_mesh.h"
#include "comm/testing/world.h"
#include "models/gpt/gpt.h"
#include "models/llama/llama.h"
#include "models/vit/vit.h"
#include "parallel/context/data_mesh.h"
#include "parallel/context/local_batch.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/pipeline/executor.h"
#include "parallel/plan/traffic.h"
#include "parallel/sharding/data_parallel.h"
#include "parallel/tensor/parallelize.h"
#include "tools/plan_parts/planned_models.h"

namespace plait::planning {
namespace {

using comm::testing::World;
using context_parallel::ContextKind;
using parallel::PlannedRun;
using parallel::ScheduleKind;
using parallel::Strategy;

constexpr std::int64_t kSequence = 16, kVocabulary = 51, kPartBytes = 2048;

// Sizes that do not divide where they need not; key heads fewer than ranks of tp.
const gpt::GptOptions kGpt = {.vocab_size = kVocabulary,
                              .block_size = kSequence,
                              .n_layer = 8,
                              .n_head = 8,
                              .n_embd = 16,
                              .bias = true};
const llama::LlamaOptions kLlama = {.vocab_size = kVocabulary,
                                    .max_seq_len = kSequence,
                                    .dim = 32,
                                    .n_layers = 8,
                                    .n_heads = 8,
                                    .n_kv_heads = 2,
                                    .hidden = 43};
const vit::VitOptions kVit = {.image_size = 8,
                              .patch_size = 2,
                              .channels = 1,
                              .dim = 12,
                              .depth = 3,
                              .heads = 8,
                              .head_dim = 2,
                              .mlp_dim = 19,
                              .classes = 5};

enum class Kind { kGpt, kLlama, kVit };

std::shared_ptr<models::SplitModuleModel> MakeModel(Kind kind, at::ScalarType type) {
  at::manual_seed(1);
  if (kind == Kind::kGpt) return std::make_shared<gpt::Gpt>(kGpt, type);
  if (kind == Kind::kLlama) return std::make_shared<llama::Llama>(kLlama, type);
  return std::make_shared<vit::Vit>(kVit, type);
}

parallel::PlannedModel PlannedOf(Kind kind, at::ScalarType type) {
  if (kind == Kind::kGpt) return Planned(kGpt, kSequence, type);
  if (kind == Kind::kLlama) return Planned(kLlama, kSequence, type);
  return Planned(kVit, type);
}

models::Batch MakeBatch(Kind kind, const PlannedRun& run) {
  if (kind == Kind::kVit) {
    return {at::randn({run.micro_batch, 1, 8, 8}, run.compute_type),
            at::randint(5, {run.micro_batch}, at::kLong)};
  }
  const at::Tensor text = at::randint(kVocabulary, {run.micro_batch, kSequence + 1}, at::kLong);
  return {text.narrow(1, 0, kSequence).contiguous(), text.narrow(1, 1, kSequence).contiguous()};
}

// That the model makes of an image; 0: of text.
std::int64_t Tokens(Kind kind) { return kind == Kind::kVit ? kVit.tokens() : 0; }

// Bytes and calls by axis and operation, where there are bytes: a receive or a barrier sends none.
using Sent = std::map<std::string, std::pair<std::int64_t, std::int64_t>>;

Sent SentSoFar() {
  Sent sent;
  for (const char* axis : {"pp", "dp_replicate", "dp_shard", "cp", "tp", "pp_ends"}) {
    const auto of_axis = World().stats().find(axis);
    if (of_axis == World().stats().end()) continue;
    for (int op = 0; op < comm::kOperations; ++op) {
      const std::string name = absl::StrCat(axis, " ", comm::Name(static_cast<comm::Operation>(op)));
      const comm::OperationStats& stats = of_axis->second[op];
      if (stats.wire_bytes > 0) sent[name] = {stats.wire_bytes, stats.calls};
    }
  }
  return sent;
}

// A rank's part of a training with everything that the run asks for, as tools/training makes it.
class Training {
 public:
  Training(Kind kind, const PlannedRun& run)
      : kind_(kind),
        run_(run),
        mesh_(*comm::DeviceMesh::Create(World(), {{"pp", run.mesh.pp},
                                                  {"dp_replicate", run.mesh.dp_replicate},
                                                  {"dp_shard", run.mesh.dp_shard},
                                                  {"cp", run.mesh.cp},
                                                  {"tp", run.mesh.tp}})),
        model_(MakeModel(kind, run.master_type)),
        context_(mesh_.axis("cp"), run.context) {
    EXPECT_TRUE(tensor_parallel::Parallelize(*model_, mesh_,
                                             tensor_parallel::DefaultPlan(*model_, run.mesh.tp),
                                             {.sequence_parallel = run.sequence_parallel})
                    .ok());
    const std::vector<models::ParameterUnit> all = model_->units();
    const parallel::Schedule schedule = *parallel::MakeSchedule(
        run.schedule, {.ranks = run.mesh.pp, .chunks = run.chunks, .micro_batches = run.micro_batches});
    const auto stages = *parallel::SplitBlocks(parallel::CostsByParameters(all), schedule.stages());
    std::vector<models::ParameterUnit> units;
    const comm::Communicator& pp = mesh_.axis("pp");
    for (auto& unit : parallel::UnitsOfRank(all, stages, schedule.rank_of_stage, pp.rank())) {
      units.push_back(unit.unit);
    }
    const auto data_mesh = *context_parallel::DataMesh(mesh_, run.strategy);
    engine_ = *parallel::DataParallel::Create(*parallel::WithEnds(data_mesh, schedule.rank_of_stage), units,
                                              {.strategy = run.strategy,
                                               .reshard_after_forward = run.reshard_after_forward,
                                               .prefetch = run.prefetch,
                                               .compute_type = run.compute_type,
                                               .part_bytes = run.part_bytes});
    optimizer_ = std::make_unique<parallel::ShardedOptimizer>(*engine_, parallel::ShardedOptimizerOptions{});
    pipeline_ = *parallel::PipelineExecutor::Create(
        *engine_, *model_, pp, schedule, stages, {.reduce_every_micro_batch = run.reduce_each_micro_batch});
  }
  ~Training() { engine_->WaitForParameters(); }

  void Step() {
    at::manual_seed(7);
    pipeline_->Run([this](int) {
      return parallel::PipelineMicroBatch{
          context_parallel::LocalBatch(context_, MakeBatch(kind_, run_), Tokens(kind_)), 0.01};
    });
    optimizer_->Step({.clip_norm = 1});
  }
  parallel::RankPlace place() const {
    return {mesh_.axis("pp").rank(),
            context_parallel::DataMesh(mesh_, run_.strategy)->axis("dp_shard").rank(),
            mesh_.axis("tp").rank()};
  }

 private:
  Kind kind_;
  PlannedRun run_;
  comm::DeviceMesh mesh_;
  std::shared_ptr<models::SplitModuleModel> model_;
  context_parallel::ContextAxis context_;
  std::unique_ptr<parallel::DataParallel> engine_;
  std::unique_ptr<parallel::ShardedOptimizer> optimizer_;
  std::unique_ptr<parallel::PipelineExecutor> pipeline_;
};

std::string TextOf(Kind kind, const PlannedRun& run) {
  return absl::StrCat("model ", static_cast<int>(kind), " ", ToText(run.mesh), " ", Name(run.strategy),
                      run.sequence_parallel ? " sp " : " ", Name(run.schedule), " ", run.micro_batches,
                      run.reshard_after_forward ? "" : " keeps", run.reduce_each_micro_batch ? " each" : "",
                      run.prefetch ? "" : " no prefetch",
                      run.context == ContextKind::kUlysses ? " ulysses " : " ", toString(run.compute_type));
}

void ExpectPlanned(Kind kind, PlannedRun run) {
  run.micro_batch = 2;
  run.part_bytes = kPartBytes;
  ASSERT_EQ(run.mesh.ranks(), World().size());
  const auto plan = parallel::StepPlan::Make(PlannedOf(kind, run.master_type), run);
  ASSERT_TRUE(plan.ok()) << TextOf(kind, run) << ": " << plan.status();
  Training training(kind, run);
  training.Step();
  const Sent before = SentSoFar();
  training.Step();
  Sent sent = SentSoFar();
  for (const auto& [name, of_first_step] : before) {
    auto& [bytes, calls] = sent[name];
    bytes -= of_first_step.first;
    calls -= of_first_step.second;
    if (bytes == 0) sent.erase(name);
  }
  Sent planned;
  for (const parallel::AxisTraffic& t : TrafficOf(*plan, training.place())) {
    if (t.wire_bytes == 0) continue;
    planned[absl::StrCat(t.axis, " ", comm::Name(t.operation))] = {t.wire_bytes, t.calls};
  }
  EXPECT_EQ(sent, planned) << TextOf(kind, run) << ", rank " << World().rank();
}

constexpr Strategy kSharded[] = {Strategy::kZero1, Strategy::kZero2, Strategy::kFsdp};

TEST(Traffic, OfDataParallelRanks) {
  const int n = World().size();
  for (const at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
    ExpectPlanned(Kind::kGpt, {.mesh = {.dp_replicate = n}, .compute_type = compute});
    for (const Strategy strategy : kSharded) {
      ExpectPlanned(Kind::kLlama, {.mesh = {.dp_shard = n}, .strategy = strategy, .compute_type = compute});
      ExpectPlanned(Kind::kGpt, {.mesh = {.dp_shard = n},
                                 .strategy = strategy,
                                 .micro_batches = 3,
                                 .compute_type = compute,
                                 .reduce_each_micro_batch = true});
    }
  }
  ExpectPlanned(Kind::kVit, {.mesh = {.dp_shard = n}, .strategy = Strategy::kFsdp, .prefetch = false});
  if (n < 4) return;
  ExpectPlanned(Kind::kLlama, {.mesh = {.dp_replicate = 2, .dp_shard = n / 2}, .strategy = Strategy::kFsdp});
}

TEST(Traffic, OfSplitLayers) {
  const int n = World().size();
  for (const bool sequence : {false, true}) {
    for (const Kind kind : {Kind::kGpt, Kind::kLlama, Kind::kVit}) {
      ExpectPlanned(kind, {.mesh = {.tp = n}, .sequence_parallel = sequence, .micro_batches = 2});
      if (n < 4) continue;
      ExpectPlanned(kind, {.mesh = {.dp_shard = n / 2, .tp = 2},
                           .strategy = Strategy::kFsdp,
                           .sequence_parallel = sequence,
                           .compute_type = at::kBFloat16});
      ExpectPlanned(kind, {.mesh = {.dp_replicate = 2, .tp = n / 2}, .sequence_parallel = sequence});
    }
  }
}

TEST(Traffic, OfSplitSequences) {
  const int n = World().size();
  for (const ContextKind context : {ContextKind::kRing, ContextKind::kUlysses}) {
    for (const Kind kind : {Kind::kGpt, Kind::kLlama, Kind::kVit}) {
      ExpectPlanned(kind, {.mesh = {.cp = n}, .context = context});
      ExpectPlanned(kind, {.mesh = {.cp = n}, .strategy = Strategy::kFsdp, .context = context});
      if (n < 4) continue;
      ExpectPlanned(kind,
                    {.mesh = {.dp_shard = n / 2, .cp = 2}, .strategy = Strategy::kZero2, .context = context});
      ExpectPlanned(kind, {.mesh = {.dp_replicate = n / 4, .cp = 2, .tp = 2},
                           .sequence_parallel = true,
                           .context = context,
                           .compute_type = at::kBFloat16});
    }
  }
}

TEST(Traffic, OfStages) {
  const int n = World().size(), pp = n == 2 ? 2 : n / 2;
  for (const ScheduleKind schedule : parallel::kScheduleKinds) {
    const bool two = schedule == ScheduleKind::kInterleaved || schedule == ScheduleKind::kZbv;
    if (two && 2 * pp > 8) continue;
    ExpectPlanned(
        Kind::kLlama,
        {.mesh = {.pp = n}, .schedule = two && n == 8 ? ScheduleKind::k1F1B : schedule, .micro_batches = 8});
    if (n < 4) continue;
    for (const Strategy strategy : kSharded) {
      for (const bool keeps : {false, true}) {
        if (keeps && strategy != Strategy::kFsdp) continue;
        ExpectPlanned(Kind::kGpt, {.mesh = {.pp = pp, .dp_shard = 2},
                                   .strategy = strategy,
                                   .schedule = schedule,
                                   .micro_batches = 8,
                                   .reshard_after_forward = !keeps,
                                   .reduce_each_micro_batch = !keeps});
      }
    }
    ExpectPlanned(Kind::kLlama, {.mesh = {.pp = pp, .tp = 2},
                                 .sequence_parallel = true,
                                 .schedule = schedule,
                                 .micro_batches = 4,
                                 .compute_type = at::kBFloat16});
  }
  if (n >= 4)
    ExpectPlanned(Kind::kVit, {.mesh = {.pp = 2, .dp_replicate = n / 4, .tp = 2}, .micro_batches = 2});
  if (n < 8) return;
  ExpectPlanned(Kind::kGpt, {.mesh = {.pp = 2, .dp_shard = 2, .tp = 2},
                             .strategy = Strategy::kFsdp,
                             .sequence_parallel = true,
                             .micro_batches = 4});
  ExpectPlanned(Kind::kLlama, {.mesh = {.pp = 2, .cp = 2, .tp = 2}, .micro_batches = 4});
}

}  // namespace
}  // namespace plait::planning
