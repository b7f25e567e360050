// Reproducible training: every bit of losses, gradient norms and parameters is that of one rank, in float32, for GPT
// (whose embedding is tied between the ends of a pipeline), Llama and ViT, with clipping, dropout, ignored targets and
// leaves of unequal counts. Runs that lack one of its rules must differ, so that equal bits are no accident.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/device_mesh.h"
#include "comm/testing/world.h"
#include "models/gpt/gpt.h"
#include "models/llama/llama.h"
#include "models/vit/vit.h"
#include "parallel/pipeline/stage_split.h"
#include "tests/parity/staged_training.h"

namespace plait::parity {
namespace {

using comm::testing::World;
using models::Batch;
using parallel::ScheduleKind;
using parallel::Strategy;

constexpr int kSteps = 10, kLeaves = 8;
constexpr std::int64_t kSequence = 12, kVocabulary = 29, kSamples = 2;
constexpr double kClip = 0.1;
const parallel::ShardedOptimizerOptions kAdamW = {
    .lr = 1e-2, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .weight_decay = 0.1};

enum class Kind { kGpt, kLlama, kVit };

struct Setting {
  Kind kind = Kind::kGpt;
  int pp = 1, replicas = 1, shards = 1;
  Strategy strategy = Strategy::kDdp;
  ScheduleKind schedule = ScheduleKind::k1F1B;
  at::ScalarType compute_type = at::kFloat;
  bool reproducible = true;
  int leaves = kLeaves;  // of a step, with so many samples in all

  int leaves_of_rank() const { return leaves / (replicas * shards); }
  std::string Text() const {
    return std::string(Name(schedule)) + " pp=" + std::to_string(pp) +
           " dp_replicate=" + std::to_string(replicas) + " dp_shard=" + std::to_string(shards) + " " +
           std::string(Name(strategy)) + " model " + std::to_string(static_cast<int>(kind)) +
           (reproducible ? "" : ", plain sums") + ", " + std::to_string(leaves) + " leaves";
  }
};

std::shared_ptr<models::BlockModel> MakeModel(Kind kind) {
  at::manual_seed(11);
  if (kind == Kind::kVit) {
    return std::make_shared<vit::Vit>(vit::VitOptions{.image_size = 8,
                                                      .patch_size = 4,
                                                      .dim = 16,
                                                      .depth = 4,
                                                      .heads = 2,
                                                      .head_dim = 8,
                                                      .mlp_dim = 24,
                                                      .classes = 5,
                                                      .dropout = 0.1},
                                      at::kFloat);
  }
  if (kind == Kind::kLlama) {
    return std::make_shared<llama::Llama>(llama::LlamaOptions{.vocab_size = kVocabulary,
                                                              .max_seq_len = kSequence,
                                                              .dim = 24,
                                                              .n_layers = 4,
                                                              .n_heads = 4,
                                                              .n_kv_heads = 2,
                                                              .hidden = 20},
                                          at::kFloat);
  }
  return std::make_shared<gpt::Gpt>(gpt::GptOptions{.vocab_size = kVocabulary,
                                                    .block_size = kSequence,
                                                    .n_layer = 4,
                                                    .n_head = 2,
                                                    .n_embd = 24,
                                                    .dropout = 0.1,
                                                    .bias = true},
                                    at::kFloat);
}

// Samples of leaf `leaf` of kLeaves; some have targets that are ignored, one nothing but these.
Batch SamplesOf(Kind kind, int step, int leaf) {
  at::manual_seed(1 + step + 100 * leaf);
  if (kind == Kind::kVit) return {at::randn({kSamples, 3, 8, 8}), at::randint(5, {kSamples}, at::kLong)};
  const at::Tensor text = at::randint(kVocabulary, {kSamples, kSequence + 1}, at::kLong);
  Batch batch = {text.narrow(1, 0, kSequence).contiguous(), text.narrow(1, 1, kSequence).contiguous()};
  if (leaf % 3 == 1) batch.targets.narrow(1, 0, 5).fill_(-1);
  if (leaf == 5) batch.targets.fill_(-1);
  return batch;
}

Batch MakeBatch(const Setting& s, int step, int leaf) {
  std::vector<at::Tensor> inputs, targets;
  const int factor = kLeaves / s.leaves;
  for (int part = leaf * factor; part < (leaf + 1) * factor; ++part) {
    const Batch samples = SamplesOf(s.kind, step, part);
    inputs.push_back(samples.inputs);
    targets.push_back(samples.targets);
  }
  Batch batch = {at::cat(inputs), at::cat(targets)};
  batch.random.seed = 1000 * step + leaf;
  return batch;
}

double CountOfStep(const Setting& s, int step) {
  std::int64_t count = 0;
  for (int leaf = 0; leaf < s.leaves; ++leaf)
    count += MakeBatch(s, step, leaf).targets.ge(0).sum().item<std::int64_t>();
  return static_cast<double>(count);
}

struct Trained {
  std::vector<double> losses;  // of each leaf of each step
  std::vector<double> norms;
  std::map<std::string, at::Tensor> parameters;  // those of this rank's stages
};

// Collective over `world`.
Trained Train(const Setting& s, const comm::Communicator& world) {
  const comm::DeviceMesh mesh =
      *comm::DeviceMesh::Create(world, {{"pp", s.pp}, {"dp_replicate", s.replicas}, {"dp_shard", s.shards}});
  const std::shared_ptr<models::BlockModel> model = MakeModel(s.kind);
  const StagedTraining staged(*model, mesh,
                              {.schedule = s.schedule,
                               .micro_batches = s.leaves_of_rank(),
                               .engine = {.strategy = s.strategy,
                                          .compute_type = s.compute_type,
                                          .reproducible = s.reproducible,
                                          .part_bytes = 2048},
                               .optimizer = kAdamW});
  const int data_rank = mesh.axis("dp_replicate").rank() * s.shards + mesh.axis("dp_shard").rank();
  Trained trained;
  for (int step = 0; step < kSteps; ++step) {
    const double count = CountOfStep(s, step);
    const auto leaf_of = [&](int k) { return data_rank * s.leaves_of_rank() + k; };
    const parallel::PipelineStep done = staged.pipeline->Run([&](int k) {
      return parallel::PipelineMicroBatch{MakeBatch(s, step, leaf_of(k)), 1 / count};
    });
    // Each rank's in their places, and zero from all others: sums of one term.
    std::vector<double> losses(s.leaves, 0);
    for (std::size_t k = 0; k < done.losses.size(); ++k) {
      losses[leaf_of(static_cast<int>(k))] = done.losses[k].sum.item<double>();
    }
    world.AllReduce(comm::BufferOf(absl::MakeSpan(losses)));
    trained.losses.insert(trained.losses.end(), losses.begin(), losses.end());
    trained.norms.push_back(staged.optimizer->Step({.clip_norm = kClip}).gradient_norm);
    EXPECT_GT(trained.norms.back(), kClip) << "clipping is not tested";
  }
  staged.dp->VisitUnsharded([&](const models::ParameterUnit& unit) {
    for (const models::ParameterSpec& p : unit.parameters)
      trained.parameters[p.name] = p.tensor.detach().clone();
  });
  staged.dp->WaitForParameters();
  return trained;
}

bool SameBits(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

// What differs in bits from a run on one rank, on any rank.
int Differences(const Trained& trained, const Trained& serial, bool report) {
  int differences = 0;
  const auto compare = [&](bool same, const std::string& what) {
    differences += same ? 0 : 1;
    if (report && !same) ADD_FAILURE() << what << " differs";
  };
  for (std::size_t i = 0; i < serial.losses.size() && trained.losses.size() == serial.losses.size(); ++i) {
    compare(trained.losses[i] == serial.losses[i],
            "loss of leaf " + std::to_string(i % kLeaves) + " of step " + std::to_string(i / kLeaves));
  }
  for (std::size_t i = 0; i < serial.norms.size(); ++i) {
    compare(trained.norms[i] == serial.norms[i], "norm of step " + std::to_string(i));
  }
  for (const auto& [name, value] : trained.parameters) {
    compare(SameBits(value, serial.parameters.at(name)), name);
  }
  World().AllReduce(comm::BufferOf(absl::MakeSpan(&differences, 1)));
  return differences;
}

const Trained& OnOneRank(Kind kind, at::ScalarType type = at::kFloat) {
  static std::map<std::pair<Kind, at::ScalarType>, Trained> runs;
  const auto found = runs.find({kind, type});
  if (found != runs.end()) return found->second;
  return runs[{kind, type}] = Train({.kind = kind, .compute_type = type}, comm::Communicator::Self());
}

void ExpectBitsOfOneRank(const Setting& s) {
  SCOPED_TRACE(s.Text());
  Differences(Train(s, World()), OnOneRank(s.kind, s.compute_type), /*report=*/true);
}

// Every setting of these on all ranks.
std::vector<Setting> Meshes() {
  const int ranks = World().size();
  std::vector<Setting> meshes = {{.replicas = ranks},
                                 {.shards = ranks, .strategy = Strategy::kZero1},
                                 {.shards = ranks, .strategy = Strategy::kZero2},
                                 {.shards = ranks, .strategy = Strategy::kFsdp},
                                 {.pp = ranks}};
  if (ranks == 2) {
    meshes.push_back({.pp = 2, .schedule = ScheduleKind::kGpipe});
    meshes.push_back({.pp = 2, .strategy = Strategy::kFsdp, .schedule = ScheduleKind::kInterleaved});
    return meshes;
  }
  meshes.push_back({.replicas = 2, .shards = 2, .strategy = Strategy::kZero1});
  meshes.push_back({.replicas = 2, .shards = 2, .strategy = Strategy::kFsdp});
  meshes.push_back({.pp = 2, .replicas = 2});
  meshes.push_back(
      {.pp = 2, .shards = 2, .strategy = Strategy::kFsdp, .schedule = ScheduleKind::kInterleaved});
  return meshes;
}

TEST(Reproducible, GptHasTheBitsOfOneRank) {
  for (const Setting& s : Meshes()) ExpectBitsOfOneRank(s);
}

// One with shards, and one with stages.
TEST(Reproducible, OtherModelsAndTypesHaveTheBitsOfOneRank) {
  Setting shards = {.shards = 2, .strategy = Strategy::kFsdp}, stages = {.pp = 2};
  if (World().size() == 4) shards.replicas = stages.replicas = 2;
  for (Setting s : {shards, stages}) {
    for (const Kind kind : {Kind::kLlama, Kind::kVit}) {
      s.kind = kind;
      ExpectBitsOfOneRank(s);
    }
    s.kind = Kind::kGpt;
    s.compute_type = at::kBFloat16;
    ExpectBitsOfOneRank(s);
  }
}

// Otherwise sums of one rank, and of the transport, come in other orders.
TEST(Reproducible, OtherSumsAndLeavesAreSeen) {
  const int ranks = World().size();
  for (Setting s : {Setting{.replicas = ranks},
                    {.shards = ranks, .strategy = Strategy::kFsdp},
                    {.pp = 2, .replicas = ranks / 2}}) {
    SCOPED_TRACE(s.Text());
    s.reproducible = false;
    EXPECT_GT(Differences(Train(s, World()), OnOneRank(s.kind), /*report=*/false), 0);
  }
  const Setting larger_leaves = {.replicas = World().size(), .leaves = kLeaves / 2};
  EXPECT_GT(Differences(Train(larger_leaves, World()), OnOneRank(Kind::kGpt), /*report=*/false), 0);
}

// Shards begin and end at multiples of kAlignment elements: the kernels step each element alike, wherever it lies.
TEST(Reproducible, OptimizersStepShardsAsTheWhole) {
  constexpr std::int64_t kCount = 40 * parallel::FlatLayout::kAlignment;
  at::manual_seed(3);
  const at::Tensor value = at::randn({kCount}), gradient = at::randn({kCount}), first = at::randn({kCount}),
                   second = at::randn({kCount}).square();
  const auto step = [&](const std::vector<std::int64_t>& bounds) {
    at::Tensor stepped = value.clone();
    const at::Tensor divisor = at::full({}, 1.7f), count = at::full({}, 3.0f);
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      const auto part = [&](const at::Tensor& of) {
        return of.narrow(0, bounds[i], bounds[i + 1] - bounds[i]);
      };
      at::_fused_adamw_({part(stepped)}, {part(gradient).clone()}, {part(first).clone()},
                        {part(second).clone()}, {}, {count}, 0.01, 0.9, 0.95, 0.1, 1e-8, false, false,
                        divisor);
    }
    return stepped;
  };
  const at::Tensor whole = step({0, kCount});
  for (const std::int64_t begin : {1, 2, 3, 7, 20, 39}) {
    const std::int64_t end = begin * parallel::FlatLayout::kAlignment;
    EXPECT_TRUE(SameBits(step({0, end, kCount}), whole)) << begin;
  }
}

TEST(Reproducible, RefusesWhatItDoesNotCover) {
  const std::shared_ptr<models::BlockModel> model = MakeModel(Kind::kGpt);
  const comm::DeviceMesh mesh = *comm::DeviceMesh::Create(comm::Communicator::Self(), {{"dp_shard", 1}});
  const auto dp = *parallel::DataParallel::Create(mesh, model->units(), {.reproducible = true});
  for (const ScheduleKind kind : {ScheduleKind::kZbH1, ScheduleKind::kZbv, ScheduleKind::kInterleaved}) {
    const parallel::Schedule schedule = *parallel::MakeSchedule(kind, {.ranks = 1, .micro_batches = 4});
    const auto stages =
        *parallel::SplitBlocks(parallel::CostsByParameters(model->units()), schedule.stages());
    const auto made =
        parallel::PipelineExecutor::Create(*dp, *model, comm::Communicator::Self(), schedule, stages);
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument) << schedule.name;
  }
  dp->WaitForParameters();
}

}  // namespace
}  // namespace plait::parity
