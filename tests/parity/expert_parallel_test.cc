// A GPT with experts on several ranks against one rank with LibTorch's AdamW, in float64: losses, gradient norms and every
// parameter, for every gate, with replicas whose placement changes in each step, with sharded states, split layers, and split
// sequences. Numbers of experts, tokens and hidden columns do not divide.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/nan_is_infinite.h"
#include "comm/device_mesh.h"
#include "comm/testing/world.h"
#include "models/gpt/gpt.h"
#include "models/moe/moe_mlp.h"
#include "parallel/context/data_mesh.h"
#include "parallel/context/local_batch.h"
#include "parallel/moe/expert_mesh.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/sharding/data_parallel.h"
#include "parallel/tensor/parallelize.h"
#include "tests/parity/serial_adamw.h"

namespace plait::parity {
namespace {

using comm::testing::World;
using models::Batch;
using models::BlockState;
using moe::GateKind, moe::MoeOptions, moe::PlacementPolicy;

constexpr int kMostSteps = 12;
constexpr std::int64_t kSamples = 8, kSequence = 7, kVocabulary = 13;
constexpr double kClip = 0.1, kTolerance = 1e-12;
const parallel::ShardedOptimizerOptions kAdamW = {
    .lr = 1e-2, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.1};

MoeOptions Experts(GateKind gate, int experts = 9) {
  MoeOptions moe = {.hidden = 11};
  moe.gate = {.kind = gate, .experts = experts, .k = gate == GateKind::kSwitch ? 1 : 2, .z_weight = 0.01};
  if (gate == GateKind::kSwitch) moe.gate.jitter = 0.1;
  if (gate == GateKind::kBias) moe.gate.bias_rate = 0.05;
  return moe;
}

std::shared_ptr<gpt::Gpt> MakeModel(const MoeOptions& moe) {
  at::manual_seed(11);
  return std::make_shared<gpt::Gpt>(gpt::GptOptions{.vocab_size = kVocabulary,
                                                    .block_size = kSequence + 1,
                                                    .n_layer = 2,
                                                    .n_head = 8,
                                                    .n_embd = 16,
                                                    .dropout = 0.2,
                                                    .bias = true,
                                                    .moe = moe},
                                    at::kDouble);
}

Batch MakeBatch(int step, std::int64_t seq) {
  at::manual_seed(1 + step);
  const at::Tensor text = at::randint(kVocabulary, {kSamples, seq + 1}, at::kLong);
  Batch batch = {text.narrow(1, 0, seq).contiguous(), text.narrow(1, 1, seq).contiguous()};
  batch.random.seed = static_cast<std::uint64_t>(step);
  return batch;
}

SerialTraining SerialRun(const MoeOptions& moe, std::int64_t seq = kSequence) {
  const auto model = MakeModel(moe);
  SerialTraining run;
  run.parameters = NamedParameters(model->units());
  SerialAdamW optimizer(run.parameters, kAdamW);
  for (int step = 0; TrainsSerially() && step < Steps(kMostSteps); ++step) {
    optimizer.ZeroGradients();
    const at::Tensor loss = models::RunModel(*model, MakeBatch(step, seq)).sum / (kSamples * seq);
    loss.backward();
    optimizer.Step(kClip);
    model->EndStep(/*updated=*/true);
    run.losses.push_back(loss.item<double>());
  }
  TakeFromFirstRank(run);
  return run;
}

struct Setting {
  std::vector<comm::MeshAxis> mesh;  // dp_replicate or dp_shard, cp, tp
  int ep = 1;
  parallel::Strategy strategy = parallel::Strategy::kDdp;
  bool sequence_parallel = false;
  context_parallel::ContextKind context = context_parallel::ContextKind::kRing;
};

std::string TextOf(const Setting& s) {
  std::string text;
  for (const comm::MeshAxis& axis : s.mesh) absl::StrAppend(&text, axis.name, axis.size, " ");
  return absl::StrCat(text, "ep", s.ep, " ", parallel::Name(s.strategy), s.sequence_parallel ? " sp" : "");
}

// The largest relative difference of losses and parameters.
double Difference(const MoeOptions& moe, const SerialTraining& serial, const Setting& setting,
                  std::int64_t seq = kSequence) {
  const auto mesh = *comm::DeviceMesh::Create(World(), setting.mesh);
  const auto model = MakeModel(moe);
  const int tp = mesh.axis("tp").size();
  EXPECT_TRUE(tensor_parallel::Parallelize(*model, mesh, tensor_parallel::DefaultPlan(*model, tp),
                                           {.sequence_parallel = setting.sequence_parallel})
                  .ok());
  const auto data_mesh = *context_parallel::DataMesh(mesh, setting.strategy);
  const auto expert_mesh = *moe::ExpertMesh(data_mesh, setting.ep);
  const absl::Status distributed = moe::DistributeExperts(*model, expert_mesh);
  EXPECT_TRUE(distributed.ok()) << distributed;
  const comm::Communicator cp = mesh.Has("cp") ? mesh.axis("cp") : comm::Communicator::Self();
  const context_parallel::ContextAxis context(cp, setting.context);
  const auto dp = parallel::DataParallel::Create(expert_mesh, model->units(),
                                                 {.strategy = setting.strategy, .part_bytes = 512});
  EXPECT_TRUE(dp.ok()) << dp.status();
  parallel::ShardedOptimizer optimizer(**dp, kAdamW);
  const auto run = [&](std::size_t block, const BlockState& x, const models::BlockContext& at) {
    return (*dp)->Run(
        block, [&](const BlockState& in) { return model->blocks()[block]->Forward(in, at); }, x);
  };
  const int copies = tp * cp.size(), data_ranks = World().size() / copies,
            data_rank = World().rank() / copies;
  double largest = 0;
  for (int step = 0; step < Steps(kMostSteps); ++step) {
    Batch batch = MakeBatch(step, seq);
    const std::int64_t first = kSamples * data_rank / data_ranks,
                       mine = kSamples * (data_rank + 1) / data_ranks - first;
    batch.inputs = batch.inputs.narrow(0, first, mine);
    batch.targets = batch.targets.narrow(0, first, mine);
    batch.random.first_sample = first;
    batch = context_parallel::LocalBatch(context, batch, 0);
    const at::Tensor part =
        (*dp)->Forward([&] { return models::RunModel(*model, batch, run).sum / (kSamples * seq); });
    (*dp)->Backward(part);
    EXPECT_GT(optimizer.Step({.clip_norm = kClip}).gradient_norm, kClip) << "clipping is not tested";
    model->EndStep(/*updated=*/true);
    double loss = part.item<double>() / tp;
    World().AllReduce(comm::BufferOf(absl::MakeSpan(&loss, 1)));
    largest = std::max(largest, base::NanIsInfinite(std::abs(loss / serial.losses[step] - 1)));
  }
  (*dp)->VisitUnsharded([&](const models::ParameterUnit& unit) {
    for (const models::ParameterSpec& p : unit.parameters) {
      if (p.role == models::ParameterRole::kBuffer || p.tensor.numel() == 0) continue;
      const at::Tensor expected = models::LocalPart(serial.parameters.at(p.name).detach(), p.placement);
      const double difference = (p.tensor.detach() - expected).abs().max().item<double>();
      largest = std::max(largest, base::NanIsInfinite(difference / expected.abs().max().item<double>()));
    }
  });
  World().AllReduce(comm::BufferOf(absl::MakeSpan(&largest, 1)), comm::ReduceOp::kMax);
  return largest;
}

void ExpectOneRank(const MoeOptions& moe, const std::vector<Setting>& settings,
                   std::int64_t seq = kSequence) {
  MoeOptions alone = moe;
  alone.planner = {};
  alone.chunks = 1;
  const SerialTraining serial = SerialRun(alone, seq);
  for (const Setting& setting : settings) {
    EXPECT_LE(Difference(moe, serial, setting, seq), kTolerance) << TextOf(setting);
  }
}

TEST(ExpertParallel, EveryGateIsOneRank) {
  const int ranks = World().size();
  for (const GateKind gate :
       {GateKind::kTopK, GateKind::kNoisyTopK, GateKind::kSwitch, GateKind::kGShard, GateKind::kBias}) {
    SCOPED_TRACE(moe::Name(gate));
    ExpectOneRank(Experts(gate), {{{{"dp_replicate", ranks}, {"tp", 1}}, ranks}});
  }
}

TEST(ExpertParallel, EveryStrategyAndMesh) {
  using parallel::Strategy;
  const int ranks = World().size();
  std::vector<Setting> settings;
  for (int ep = 1; ep <= ranks; ep *= 2) {
    if (ranks % ep != 0) continue;
    settings.push_back({{{"dp_replicate", ranks}, {"tp", 1}}, ep});
    for (const Strategy strategy : {Strategy::kZero1, Strategy::kZero2, Strategy::kFsdp}) {
      settings.push_back({{{"dp_shard", ranks}, {"tp", 1}}, ep, strategy});
    }
  }
  if (ranks >= 4 && ranks % 4 == 0) {
    settings.push_back(
        {{{"dp_replicate", 2}, {"dp_shard", ranks / 2}, {"tp", 1}}, ranks / 2, Strategy::kFsdp});
    settings.push_back({{{"dp_replicate", 2}, {"dp_shard", ranks / 2}, {"tp", 1}}, ranks, Strategy::kFsdp});
  }
  ExpectOneRank(Experts(GateKind::kTopK), settings);
}

TEST(ExpertParallel, ReplicasAndChunksChangeNothing) {
  const int ranks = World().size();
  for (const PlacementPolicy policy : {PlacementPolicy::kEplb, PlacementPolicy::kBalanced}) {
    MoeOptions moe = Experts(GateKind::kTopK);
    moe.planner = {.policy = policy, .replica_slots = 3};
    moe.chunks = 2;
    ExpectOneRank(moe, {{{{"dp_replicate", ranks}, {"tp", 1}}, ranks},
                        {{{"dp_shard", ranks}, {"tp", 1}}, ranks, parallel::Strategy::kFsdp}});
  }
}

TEST(ExpertParallel, CapacitySharedAndGatedExperts) {
  const int ranks = World().size();
  MoeOptions moe = Experts(GateKind::kTopK);
  moe.gate.capacity_factor = 0.8;
  moe.shared_hidden = 5;
  moe.gated = true;
  moe.activation = moe::Activation::kSilu;
  ExpectOneRank(moe, {{{{"dp_replicate", ranks}, {"tp", 1}}, ranks}});
}

TEST(ExpertParallel, SplitLayers) {
  const int ranks = World().size();
  if (ranks % 2 != 0) return;
  MoeOptions moe = Experts(GateKind::kTopK);
  moe.shared_hidden = 5;
  for (const bool sequence : {false, true}) {
    // Sequence parallelism needs a multiple.
    ExpectOneRank(moe,
                  {{{{"dp_replicate", ranks / 2}, {"tp", 2}}, ranks / 2, parallel::Strategy::kDdp, sequence},
                   {{{"dp_shard", ranks / 2}, {"tp", 2}}, ranks / 2, parallel::Strategy::kFsdp, sequence}},
                  /*seq=*/8);
  }
}

TEST(ExpertParallel, SplitSequences) {
  const int ranks = World().size();
  if (ranks % 2 != 0) return;
  ExpectOneRank(Experts(GateKind::kTopK),
                {{{{"dp_replicate", ranks / 2}, {"cp", 2}, {"tp", 1}}, ranks},
                 {{{"dp_shard", ranks / 2}, {"cp", 2}, {"tp", 1}}, 2, parallel::Strategy::kFsdp}});
}

}  // namespace
}  // namespace plait::parity
