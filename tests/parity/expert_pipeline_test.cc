// Pipelines of stages with experts on several data ranks each, against one rank with LibTorch's AdamW, in float64: every schedule,
// with backward passes in two parts too, replicated and sharded states, replicas of experts, activation checkpoints. Several
// micro-batches of unequal sizes are a step: balance losses are those of a micro-batch of all data ranks, biases move once.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/device_mesh.h"
#include "comm/testing/world.h"
#include "models/gpt/gpt.h"
#include "models/moe/moe_mlp.h"
#include "parallel/activation_checkpoint/activation_checkpoint.h"
#include "parallel/moe/expert_mesh.h"
#include "parallel/tensor/parallelize.h"
#include "tests/parity/serial_adamw.h"
#include "tests/parity/staged_training.h"

namespace plait::parity {
namespace {

using comm::testing::World;
using models::Batch;
using moe::GateKind, moe::MoeOptions, moe::PlacementPolicy;
using parallel::ScheduleKind;
using parallel::Strategy;

constexpr int kSteps = 4, kStages = 2, kMicroBatches = 4;
constexpr std::int64_t kSequence = 6, kVocabulary = 13, kBlocks = 5;
constexpr double kClip = 0.1, kTolerance = 1e-12;
const parallel::ShardedOptimizerOptions kAdamW = {
    .lr = 1e-2, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.1};

struct Setting {
  ScheduleKind schedule = ScheduleKind::k1F1B;
  GateKind gate = GateKind::kTopK;
  int ep = 2, tp = 1;
  Strategy strategy = Strategy::kDdp;
  bool replicas = false, checkpoints = false;
  bool reduce_every_micro_batch = false;
  double z_weight = 0.1;

  int data_ranks() const { return World().size() / kStages / tp; }
  std::string Text() const {
    return absl::StrCat(Name(schedule), " ", moe::Name(gate), " ep", ep, " tp", tp, " ", Name(strategy),
                        replicas ? " replicas" : "", checkpoints ? " checkpoints" : "",
                        reduce_every_micro_batch ? " every" : "", " z ", z_weight);
  }
};

// The first block has no experts: no loss leaves it.
std::shared_ptr<gpt::Gpt> MakeModel(const Setting& s, bool alone) {
  at::manual_seed(11);
  MoeOptions moe = {.hidden = 6};
  moe.gate = {.kind = s.gate, .experts = 5, .k = s.gate == GateKind::kSwitch ? 1 : 2, .z_weight = s.z_weight};
  if (s.gate == GateKind::kBias) moe.gate.bias_rate = 0.05;
  if (s.replicas && !alone) {
    moe.planner = {.policy = PlacementPolicy::kBalanced, .replica_slots = 3};
    moe.chunks = 2;
  }
  return std::make_shared<gpt::Gpt>(gpt::GptOptions{.vocab_size = kVocabulary,
                                                    .block_size = kSequence,
                                                    .n_layer = kBlocks,
                                                    .n_head = 2,
                                                    .n_embd = 8,
                                                    .dropout = 0.2,
                                                    .bias = true,
                                                    .moe = moe,
                                                    .moe_every = 2},
                                    at::kDouble);
}

// Of all data ranks; the second micro-batch is smaller.
Batch MakeBatch(int step, int micro_batch, int data_ranks) {
  at::manual_seed(1 + step + 100 * micro_batch);
  const std::int64_t samples = (micro_batch == 1 ? 1 : 2) * data_ranks;
  const at::Tensor text = at::randint(kVocabulary, {samples, kSequence + 1}, at::kLong);
  Batch batch = {text.narrow(1, 0, kSequence).contiguous(), text.narrow(1, 1, kSequence).contiguous()};
  batch.random.seed = static_cast<std::uint64_t>(step + 100 * micro_batch);
  return batch;
}

Batch PartOf(Batch batch, int rank, int ranks) {
  const std::int64_t samples = batch.inputs.size(0) / ranks;
  batch.random.first_sample = samples * rank;
  batch.inputs = batch.inputs.narrow(0, samples * rank, samples);
  batch.targets = batch.targets.narrow(0, samples * rank, samples);
  return batch;
}

double CountOfStep(int data_ranks) {
  return static_cast<double>((2 * kMicroBatches - 1) * data_ranks * kSequence);
}

struct Serial {
  SerialTraining training;
  NamedTensors buffers;
  double evaluated = 0;  // loss of a batch, behind the last step
};

Serial SerialRun(const Setting& s) {
  const auto model = MakeModel(s, /*alone=*/true);
  Serial serial;
  for (const models::ParameterUnit& unit : model->units()) {
    for (const models::ParameterSpec& p : unit.parameters) {
      const bool trained = p.role == models::ParameterRole::kTrained;
      (trained ? serial.training.parameters : serial.buffers)[p.name] = p.tensor;
    }
  }
  SerialAdamW optimizer(serial.training.parameters, kAdamW);
  for (int step = 0; TrainsSerially() && step < kSteps; ++step) {
    optimizer.ZeroGradients();
    double loss = 0;
    for (int k = 0; k < kMicroBatches; ++k) {
      const at::Tensor part =
          models::RunModel(*model, MakeBatch(step, k, s.data_ranks())).sum / CountOfStep(s.data_ranks());
      part.backward();
      loss += part.item<double>();
    }
    optimizer.Step(kClip);
    model->EndStep(/*updated=*/true);
    serial.training.losses.push_back(loss);
  }
  TakeFromFirstRank(serial.training);
  TakeFromFirstRank(serial.buffers);
  model->SetTraining(false);
  serial.evaluated = models::RunModel(*model, MakeBatch(90, 0, s.data_ranks())).sum.item<double>();
  return serial;
}

const Serial& SerialOf(const Setting& s) {
  static std::map<std::tuple<GateKind, int, double>, Serial> runs;
  const std::tuple key(s.gate, s.data_ranks(), s.z_weight);
  const auto found = runs.find(key);
  return found != runs.end() ? found->second : runs[key] = SerialRun(s);
}

double Summed(double value) {
  World().AllReduce(comm::BufferOf(absl::MakeSpan(&value, 1)));
  return value;
}

class Staged {
 public:
  explicit Staged(const Setting& s)
      : s_(s),
        data_axis_(s.strategy == Strategy::kDdp ? "dp_replicate" : "dp_shard"),
        model_(MakeModel(s, false)) {
    const auto mesh =
        *comm::DeviceMesh::Create(World(), {{"pp", kStages}, {data_axis_, s.data_ranks()}, {"tp", s.tp}});
    EXPECT_TRUE(
        tensor_parallel::Parallelize(*model_, mesh, tensor_parallel::DefaultPlan(*model_, s.tp), {}).ok());
    mesh_.emplace(*moe::ExpertMesh(mesh, s.ep));
    EXPECT_TRUE(moe::DistributeExperts(*model_, *mesh_).ok());
    std::vector<std::string> names;
    for (int block = 0; block < kBlocks; ++block) names.push_back(absl::StrCat("transformer.h.", block));
    const auto policy = *parallel::CheckpointPolicy::Parse(s.checkpoints ? "full" : "none", names);
    const auto forward = [this, policy](std::size_t block, const models::BlockState& x,
                                        const models::BlockContext& context) {
      return policy.Forward(block, model_->blocks()[block], x, context);
    };
    training_.emplace(*model_, *mesh_,
                      StagedOptions{.schedule = s.schedule,
                                    .micro_batches = kMicroBatches,
                                    .engine = {.strategy = s.strategy, .part_bytes = 512},
                                    .optimizer = kAdamW,
                                    .pipeline = {.forward = forward,
                                                 .reduce_every_micro_batch = s.reduce_every_micro_batch}});
  }

  double Step(int step) {
    const double count = CountOfStep(s_.data_ranks());
    const parallel::PipelineStep done = training_->pipeline->Run([&](int k) {
      return parallel::PipelineMicroBatch{Mine(MakeBatch(step, k, s_.data_ranks())), 1 / count};
    });
    EXPECT_GT(training_->optimizer->Step({.clip_norm = kClip}).gradient_norm, kClip)
        << "clipping is not tested";
    model_->EndStep(/*updated=*/true);
    // Of this rank's stages; a forward pass that is repeated does not count.
    for (const moe::MoeMlp* layer : model_->moe_layers()) {
      const std::int64_t tokens = layer->load().tokens;
      EXPECT_TRUE(tokens == 0 || tokens == static_cast<std::int64_t>(count))
          << tokens << " tokens of " << count;
      tokens_ += tokens;
    }
    EXPECT_GT(Summed(static_cast<double>(tokens_)), 0);
    double loss = 0;
    for (const models::LossSum& one : done.losses) loss += one.sum.item<double>() / count;
    return Summed(loss) / s_.tp;
  }
  double Evaluate() {
    model_->SetTraining(false);
    return Summed(training_->pipeline->Loss(Mine(MakeBatch(90, 0, s_.data_ranks()))).sum.item<double>()) /
           s_.tp;
  }
  parallel::DataParallel& engine() { return *training_->dp; }

 private:
  Batch Mine(const Batch& batch) const {
    return PartOf(batch, mesh_->axis(data_axis_).rank(), s_.data_ranks());
  }

  Setting s_;
  std::string data_axis_;
  std::shared_ptr<gpt::Gpt> model_;
  std::int64_t tokens_ = 0;
  std::optional<comm::DeviceMesh> mesh_;
  std::optional<StagedTraining> training_;
};

void ExpectOneRank(const Setting& s) {
  SCOPED_TRACE(s.Text());
  const Serial& serial = SerialOf(s);
  Staged staged(s);
  for (int step = 0; step < kSteps; ++step) {
    EXPECT_NEAR(staged.Step(step) / serial.training.losses[step], 1, kTolerance) << "loss of step " << step;
  }
  // With the shapes of a step, but without the losses of routers.
  EXPECT_NEAR(staged.Evaluate() / serial.evaluated, 1, kTolerance);
  staged.engine().VisitUnsharded([&](const models::ParameterUnit& unit) {
    for (const models::ParameterSpec& p : unit.parameters) {
      if (p.tensor.numel() == 0) continue;
      const bool buffer = p.role == models::ParameterRole::kBuffer;
      const NamedTensors& all = buffer ? serial.buffers : serial.training.parameters;
      const at::Tensor expected = models::LocalPart(all.at(p.name).detach(), p.placement);
      const double difference = (p.tensor.detach() - expected).abs().max().item<double>();
      EXPECT_LE(difference, buffer ? 0 : kTolerance * expected.abs().max().item<double>()) << p.name;
    }
  });
}

TEST(ExpertPipeline, EveryScheduleIsOneRank) {
  for (const ScheduleKind schedule : parallel::kScheduleKinds) {
    Setting s = {.schedule = schedule, .ep = World().size() / kStages};
    ExpectOneRank(s);
    s.gate = GateKind::kBias;
    s.replicas = true;
    s.strategy = Strategy::kFsdp;
    ExpectOneRank(s);
  }
}

// The loss that a stage passes on is then no function of its parameters.
TEST(ExpertPipeline, GatesWithoutALoss) {
  for (const ScheduleKind schedule : parallel::kScheduleKinds) {
    ExpectOneRank(
        {.schedule = schedule, .gate = GateKind::kBias, .ep = World().size() / kStages, .z_weight = 0});
  }
}

TEST(ExpertPipeline, StrategiesCheckpointsAndReplicas) {
  if (World().size() != 4) return;
  for (const ScheduleKind schedule : {ScheduleKind::k1F1B, ScheduleKind::kZbH1, ScheduleKind::kZbv}) {
    for (const Strategy strategy : {Strategy::kDdp, Strategy::kZero2, Strategy::kFsdp}) {
      for (const bool checkpoints : {false, true}) {
        Setting s = {
            .schedule = schedule, .strategy = strategy, .replicas = !checkpoints, .checkpoints = checkpoints};
        s.reduce_every_micro_batch = strategy != Strategy::kDdp;
        ExpectOneRank(s);
      }
    }
  }
  ExpectOneRank({.ep = 1, .strategy = Strategy::kFsdp});
  ExpectOneRank({.gate = GateKind::kNoisyTopK, .replicas = true, .checkpoints = true});
}

// Each stage's experts by their hidden width too.
TEST(ExpertPipeline, WithSplitLayers) {
  if (World().size() < 4) return;
  for (const ScheduleKind schedule : {ScheduleKind::k1F1B, ScheduleKind::kZbH1}) {
    ExpectOneRank({.schedule = schedule, .ep = World().size() / kStages / 2, .tp = 2});
  }
}

}  // namespace
}  // namespace plait::parity
