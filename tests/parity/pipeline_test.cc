// Pipelines of every schedule, with states that are replicated (ddp) or sharded (zero1, zero2, fsdp) over the ranks of
// each stage, against one rank with LibTorch's AdamW, in float64: a GPT, whose embedding is tied between the ends, and
// models whose ends share nothing. Micro-batches have unequal sizes and ignored targets, models dropout where they have any.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/testing/nan_is_infinite.h"
#include "comm/device_mesh.h"
#include "comm/testing/world.h"
#include "models/cnn/cnn.h"
#include "models/gpt/gpt.h"
#include "models/llama/llama.h"
#include "models/mlp/mlp.h"
#include "models/vit/vit.h"
#include "parallel/pipeline/simulator.h"
#include "parallel/tensor/parallelize.h"
#include "tests/parity/serial_adamw.h"
#include "tests/parity/staged_training.h"

namespace plait::parity {
namespace {

using comm::testing::World;
using models::Batch;
using parallel::ScheduleKind;
using parallel::Strategy;

constexpr int kMostSteps = 20, kFewSteps = 5;
constexpr std::int64_t kSequence = 8, kVocabulary = 13, kWidth = 8;
constexpr double kClip = 0.1, kDropout = 0.2;
parallel::ShardedOptimizerOptions AdamW(double lr) {
  return {.lr = lr, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.1};
}
// As the parity matrix.
constexpr double kTolerance = 1e-12;

enum class Kind { kGpt, kLlama, kVit, kMlp, kCnn };
constexpr Kind kTransformers[] = {Kind::kGpt, Kind::kLlama, Kind::kVit};

// What goes wrong in some runs, which must be seen.
enum class Fault { kNone, kSwappedMicroBatch, kOwnNormalizer, kTiedGradientNotSummed };

struct Setting {
  Kind kind = Kind::kGpt;
  ScheduleKind schedule = ScheduleKind::k1F1B;
  int stages = 2;  // ranks along pp
  int tp = 1;
  bool sequence_parallel = false;
  Strategy strategy = Strategy::kDdp;
  int steps = kFewSteps;
  bool reshard_after_forward = true, reduce_every_micro_batch = false;
  Fault fault = Fault::kNone;
  // Undefined: the model's own values in float64. Else values for a comparison of roundings.
  at::ScalarType drawn_in = at::ScalarType::Undefined;

  bool is_drawn() const { return drawn_in != at::ScalarType::Undefined; }
  double lr() const { return is_drawn() ? kRoundingLr : 1e-2; }
  int data_ranks() const { return World().size() / stages / tp; }
  int micro_batches() const { return schedule == ScheduleKind::kInterleaved ? std::max(4, stages) : 5; }
  int chunks() const {
    return schedule == ScheduleKind::kInterleaved || schedule == ScheduleKind::kZbv ? 2 : 1;
  }
  int blocks() const { return std::max(8, stages * chunks()); }
  std::string Text() const {
    return std::string(Name(schedule)) + " pp=" + std::to_string(stages) + " tp=" + std::to_string(tp) +
           (sequence_parallel ? " sp " : " ") + std::string(Name(strategy)) +
           (reshard_after_forward ? "" : " keeps") + (reduce_every_micro_batch ? " every" : "") + " model " +
           std::to_string(static_cast<int>(kind));
  }
};

std::shared_ptr<models::BlockModel> MakeModel(Kind kind, int blocks) {
  at::manual_seed(11);
  if (kind == Kind::kMlp) {
    return std::make_shared<mlp::Mlp>(
        mlp::MlpOptions{.widths = {5, 9, 6, 11, 7, 8, 9, 6, 3}, .activation = mlp::Activation::kRelu},
        at::kDouble);
  }
  if (kind == Kind::kCnn) {
    return std::make_shared<cnn::Cnn>(
        cnn::CnnOptions{.rows = 8, .columns = 8, .hidden = 9, .dropout1 = 0, .dropout2 = 0}, at::kDouble);
  }
  if (kind == Kind::kVit) {
    return std::make_shared<vit::Vit>(vit::VitOptions{.image_size = 8,
                                                      .patch_size = 2,
                                                      .channels = 1,
                                                      .dim = kWidth,
                                                      .depth = blocks,
                                                      .heads = 2,
                                                      .head_dim = 4,
                                                      .mlp_dim = 12,
                                                      .classes = 5,
                                                      .dropout = kDropout},
                                      at::kDouble);
  }
  if (kind == Kind::kLlama) {
    return std::make_shared<llama::Llama>(llama::LlamaOptions{.vocab_size = kVocabulary,
                                                              .max_seq_len = kSequence,
                                                              .dim = kWidth,
                                                              .n_layers = blocks,
                                                              .n_heads = 2,
                                                              .n_kv_heads = 1,
                                                              .hidden = 12},
                                          at::kDouble);
  }
  return std::make_shared<gpt::Gpt>(gpt::GptOptions{.vocab_size = kVocabulary,
                                                    .block_size = kSequence,
                                                    .n_layer = blocks,
                                                    .n_head = 2,
                                                    .n_embd = kWidth,
                                                    .dropout = kDropout,
                                                    .bias = true},
                                    at::kDouble);
}

std::shared_ptr<models::BlockModel> ModelOf(const Setting& s) {
  auto model = MakeModel(s.kind, s.blocks());
  if (s.is_drawn()) DrawIn(s.drawn_in, NamedParameters(model->units()));
  return model;
}

// The second micro-batch is smaller, the third has targets that are ignored.
Batch MakeBatch(Kind kind, int step, int micro_batch, int data_rank) {
  at::manual_seed(1 + step + 100 * micro_batch + 10000 * data_rank);
  const std::int64_t samples = micro_batch == 1 ? 2 : 3;
  if (kind == Kind::kMlp) return {at::randn({samples, 5}, at::kDouble), at::randn({samples, 3}, at::kDouble)};
  if (kind == Kind::kCnn || kind == Kind::kVit) {
    return {at::randn({samples, 1, 8, 8}, at::kDouble), at::randint(5, {samples}, at::kLong)};
  }
  const at::Tensor text = at::randint(kVocabulary, {samples, kSequence + 1}, at::kLong);
  Batch batch = {text.narrow(1, 0, kSequence).contiguous(), text.narrow(1, 1, kSequence).contiguous()};
  if (micro_batch == 2) batch.targets.narrow(1, 0, 4).fill_(-1);
  return batch;
}

Batch BatchOf(const Setting& s, int step, int micro_batch, int data_rank) {
  Batch batch = MakeBatch(s.kind, step, micro_batch, data_rank);
  batch.random.seed = static_cast<std::uint64_t>(step + 100 * micro_batch + 10000 * data_rank);
  if (s.is_drawn() && batch.inputs.is_floating_point()) batch.inputs = batch.inputs.to(s.drawn_in);
  return batch;
}

std::int64_t CountOf(Kind kind, const Batch& batch) {
  if (kind != Kind::kGpt && kind != Kind::kLlama) return batch.targets.size(0);
  return batch.targets.ge(0).sum().item<std::int64_t>();
}

double CountOfStep(const Setting& s, int step) {
  std::int64_t count = 0;
  for (int micro_batch = 0; micro_batch < s.micro_batches(); ++micro_batch) {
    for (int rank = 0; rank < s.data_ranks(); ++rank) {
      count += CountOf(s.kind, MakeBatch(s.kind, step, micro_batch, rank));
    }
  }
  return static_cast<double>(count);
}

class Pipeline {
 public:
  explicit Pipeline(const Setting& setting)
      : s_(setting),
        data_axis_(setting.strategy == Strategy::kDdp ? "dp_replicate" : "dp_shard"),
        mesh_(*comm::DeviceMesh::Create(World(),
                                        {{"pp", s_.stages}, {data_axis_, s_.data_ranks()}, {"tp", s_.tp}})),
        model_(ModelOf(setting)) {
    SplitLayers();
    training_.emplace(*model_, mesh_,
                      StagedOptions{.schedule = s_.schedule,
                                    .micro_batches = s_.micro_batches(),
                                    .engine = {.strategy = s_.strategy,
                                               .reshard_after_forward = s_.reshard_after_forward,
                                               .part_bytes = s_.reshard_after_forward ? 512 : 1 << 16},
                                    .optimizer = AdamW(s_.lr()),
                                    .pipeline = {.reduce_every_micro_batch = s_.reduce_every_micro_batch},
                                    .sums_tied_gradients = s_.fault != Fault::kTiedGradientNotSummed});
    const parallel::Schedule& schedule = training_->pipeline->schedule();
    most_in_flight_ = parallel::Simulate(schedule)->most_in_flight[mesh_.axis("pp").rank()];
  }

  // This rank's part of the loss.
  double Step(int step) {
    const double count = CountOfStep(s_, step);
    const parallel::PipelineStep done = training_->pipeline->Run([&](int k) {
      const int data_rank = mesh_.axis(data_axis_).rank();
      Batch batch = BatchOf(s_, step, k, data_rank);
      const double own = static_cast<double>(CountOf(s_.kind, batch)) * s_.data_ranks() * s_.micro_batches();
      if (s_.fault == Fault::kSwappedMicroBatch && k >= 3) {
        batch.targets = BatchOf(s_, step, 7 - k, data_rank).targets;
      }
      return parallel::PipelineMicroBatch{batch, 1 / (s_.fault == Fault::kOwnNormalizer ? own : count)};
    });
    EXPECT_EQ(done.most_in_flight, most_in_flight_) << "not as simulated";
    EXPECT_EQ(done.timeline.size(), training_->pipeline->schedule().actions[mesh_.axis("pp").rank()].size());
    double loss = 0;
    for (const models::LossSum& one : done.losses) loss += one.sum.item<double>() / count;
    const auto stepped = training_->optimizer->Step({.clip_norm = kClip});
    EXPECT_GT(stepped.gradient_norm, kClip) << "clipping is not tested";
    return loss;
  }
  // Both without dropout.
  double Evaluate() {
    model_->SetTraining(false);
    double loss = training_->pipeline->Loss(BatchOf(s_, 90, 1, 0)).sum.item<double>();
    mesh_.axis("pp").AllReduce(comm::BufferOf(absl::MakeSpan(&loss, 1)));
    return loss;
  }
  // Undefined but for the last stage.
  at::Tensor Output() { return training_->pipeline->Output(BatchOf(s_, 90, 1, 0)); }
  bool has_last_stage() const {
    return training_->pipeline->schedule().rank_of_stage.back() == mesh_.axis("pp").rank();
  }
  parallel::DataParallel& engine() { return *training_->dp; }

 private:
  void SplitLayers() {
    if (s_.tp == 1) return;
    auto& model = dynamic_cast<tensor_parallel::SplittableModel&>(*model_);
    const absl::Status split =
        tensor_parallel::Parallelize(model, mesh_, tensor_parallel::DefaultPlan(model, s_.tp),
                                     {.sequence_parallel = s_.sequence_parallel});
    ASSERT_TRUE(split.ok()) << split;
  }

  Setting s_;
  std::string data_axis_;
  comm::DeviceMesh mesh_;
  std::shared_ptr<models::BlockModel> model_;
  std::optional<StagedTraining> training_;
  int most_in_flight_ = 0;
};

struct Serial {
  SerialTraining training;
  std::shared_ptr<models::BlockModel> model;
};

Serial SerialRun(const Setting& s, double perturbation = 0) {
  Serial serial = {.training = {}, .model = ModelOf(s)};
  serial.training.parameters = NamedParameters(serial.model->units());
  for (const auto& [name, parameter] : serial.training.parameters) Perturb({parameter}, perturbation);
  SerialAdamW optimizer(serial.training.parameters, AdamW(s.lr()));
  for (int step = 0; TrainsSerially() && step < s.steps; ++step) {
    optimizer.ZeroGradients();
    const double count = CountOfStep(s, step);
    double loss = 0;
    for (int micro_batch = 0; micro_batch < s.micro_batches(); ++micro_batch) {
      for (int rank = 0; rank < s.data_ranks(); ++rank) {
        const at::Tensor part =
            models::RunModel(*serial.model, BatchOf(s, step, micro_batch, rank)).sum / count;
        part.backward();
        loss += part.item<double>();
      }
    }
    optimizer.Step(kClip);
    serial.training.losses.push_back(loss);
  }
  TakeFromFirstRank(serial.training);
  serial.model->SetTraining(false);
  return serial;
}

// Of one rank, for all settings that it stands for.
const Serial& SerialOf(const Setting& s) {
  using Key = std::tuple<Kind, int, int, int, int, at::ScalarType>;
  static std::map<Key, Serial> runs;
  const Key key = {s.kind, s.blocks(), s.micro_batches(), s.data_ranks(), s.steps, s.drawn_in};
  const auto found = runs.find(key);
  return found != runs.end() ? found->second : runs[key] = SerialRun(s);
}

// Each element is some rank's to step, save and count in the norm: once.
void ExpectEverythingOnce(parallel::DataParallel& dp, const NamedTensors& all) {
  std::int64_t mine = 0, total = 0;
  for (const parallel::Shard& shard : dp.shards()) {
    for (const parallel::FlatSlice& slice : shard.layout->Slices(shard.rank)) {
      if (shard.primary[slice.parameter]) mine += slice.end - slice.begin;
    }
  }
  for (const auto& [name, tensor] : all) total += tensor.numel();
  World().AllReduce(comm::BufferOf(absl::MakeSpan(&mine, 1)));
  EXPECT_EQ(mine, total);
}

void ExpectAsSerial(const Setting& s, double tolerance = kTolerance) {
  SCOPED_TRACE(s.Text());
  const Serial& serial = SerialOf(s);
  Pipeline pipeline(s);
  for (int step = 0; step < s.steps; ++step) {
    double loss = pipeline.Step(step) / s.tp;
    World().AllReduce(comm::BufferOf(absl::MakeSpan(&loss, 1)));
    EXPECT_NEAR(loss / serial.training.losses[step], 1, tolerance) << "loss of step " << step;
  }
  ExpectParameters(pipeline.engine(), serial.training.parameters, tolerance);
  ExpectEverythingOnce(pipeline.engine(), serial.training.parameters);
  const double evaluated = models::RunModel(*serial.model, BatchOf(s, 90, 1, 0)).sum.item<double>();
  EXPECT_NEAR(pipeline.Evaluate() / evaluated, 1, tolerance);
  const at::Tensor output = pipeline.Output();
  EXPECT_EQ(output.defined(), pipeline.has_last_stage());
  if (output.defined()) {
    const at::Tensor expected = models::RunOutput(*serial.model, BatchOf(s, 90, 1, 0)).detach();
    EXPECT_LE((output - expected).abs().max().item<double>(),
              tolerance * expected.abs().max().item<double>());
  }
  pipeline.engine().WaitForParameters();
}

// The rows of the matrix: all ranks are stages.
TEST(Pipeline, EveryModelOnEveryScheduleIsOneRank) {
  for (const Kind kind : kTransformers) {
    for (const ScheduleKind schedule : parallel::kScheduleKinds) {
      ExpectAsSerial({.kind = kind,
                      .schedule = schedule,
                      .stages = World().size(),
                      .strategy = kind == Kind::kGpt ? Strategy::kFsdp : Strategy::kDdp,
                      .steps = Steps(kMostSteps)});
    }
  }
}

// Where stages have data ranks. With 8 ranks two stages bring nothing that 4 ranks do not.
TEST(Pipeline, EveryScheduleAndStrategyIsOneRank) {
  if (World().size() == 2) return;
  for (const ScheduleKind schedule : parallel::kScheduleKinds) {
    Setting s = {.schedule = schedule, .stages = World().size() / 2};
    for (const Strategy strategy : {Strategy::kDdp, Strategy::kZero1, Strategy::kZero2, Strategy::kFsdp}) {
      s.strategy = strategy;
      s.reshard_after_forward = s.reduce_every_micro_batch = true;
      ExpectAsSerial(s);
      if (strategy != Strategy::kFsdp) continue;
      s.reshard_after_forward = s.reduce_every_micro_batch = false;
      ExpectAsSerial(s);
    }
  }
}

TEST(Pipeline, ModelsWithOtherEndsAreOneRank) {
  if (World().size() == 8) return;  // as 4 ranks, with more data ranks
  for (const Kind kind : {Kind::kLlama, Kind::kVit, Kind::kMlp, Kind::kCnn}) {
    for (const ScheduleKind schedule : {ScheduleKind::k1F1B, ScheduleKind::kZbH1, ScheduleKind::kZbv}) {
      if (kind == Kind::kCnn && schedule == ScheduleKind::kZbv && World().size() == 4) continue;  // 4 blocks
      ExpectAsSerial({.kind = kind,
                      .schedule = schedule,
                      .stages = kind == Kind::kCnn ? World().size() : 2,
                      .strategy = Strategy::kFsdp});
    }
  }
}

// pp x tp, and with 8 ranks pp x dp x tp: rows of the matrix, each strategy on a schedule of its own.
TEST(Pipeline, StagesOfSplitLayersAreOneRank) {
  if (World().size() < 4) return;
  const std::pair<Strategy, ScheduleKind> rows[] = {{Strategy::kDdp, ScheduleKind::k1F1B},
                                                    {Strategy::kZero1, ScheduleKind::kInterleaved},
                                                    {Strategy::kFsdp, ScheduleKind::kZbH1}};
  for (const Kind kind : kTransformers) {
    Setting s = {.kind = kind, .tp = 2, .steps = Steps(kMostSteps)};
    for (const auto& [strategy, schedule] : rows) {
      s.strategy = strategy;
      s.schedule = schedule;
      s.sequence_parallel = strategy != Strategy::kDdp;
      if (s.data_ranks() > 1 || strategy != Strategy::kZero1) ExpectAsSerial(s);
    }
    s.steps = kFewSteps;
    for (const ScheduleKind schedule :
         {ScheduleKind::kGpipe, ScheduleKind::kInterleaved, ScheduleKind::kZbv}) {
      s.schedule = schedule;
      ExpectAsSerial(s);
    }
  }
}

// Between two runs in float32; see RoundingBound.
double FloatBound(Setting s) {
  s.drawn_in = at::kDouble;
  const double growth =
      Difference(SerialRun(s, kPerturbation).training, SerialOf(s).training) / kPerturbation;
  return RoundingBound(s.steps, at::kFloat, growth);
}

void ExpectInFloat32(Setting s, const std::vector<ScheduleKind>& schedules) {
  s.drawn_in = at::kFloat;
  const double bound = FloatBound(s);
  for (const ScheduleKind schedule : schedules) {
    s.schedule = schedule;
    ExpectAsSerial(s, bound);
  }
}

// Interleaved has other micro-batches.
TEST(Pipeline, EveryScheduleInFloat32) {
  const int stages = World().size() == 8 ? 4 : 2;
  ExpectInFloat32({.stages = stages, .strategy = Strategy::kFsdp},
                  {ScheduleKind::k1F1B, ScheduleKind::kGpipe, ScheduleKind::kZbH1, ScheduleKind::kZbv});
  ExpectInFloat32({.schedule = ScheduleKind::kInterleaved, .stages = stages}, {ScheduleKind::kInterleaved});
  if (World().size() == 2) return;
  for (const Kind kind : kTransformers) {
    ExpectInFloat32({.kind = kind, .stages = World().size()}, {ScheduleKind::k1F1B});
    ExpectInFloat32({.kind = kind, .tp = 2, .sequence_parallel = true}, {ScheduleKind::kZbH1});
  }
}

// Each is above the bound of float32, and so of float64.
TEST(Pipeline, FaultsAreSeen) {
  for (const Fault fault :
       {Fault::kSwappedMicroBatch, Fault::kOwnNormalizer, Fault::kTiedGradientNotSummed}) {
    Setting s = {.schedule = ScheduleKind::kZbH1, .stages = 2, .strategy = Strategy::kZero1};
    s.drawn_in = at::kDouble;
    const double bound = FloatBound(s);
    const Serial& serial = SerialOf(s);
    s.fault = fault;
    Pipeline pipeline(s);
    for (int step = 0; step < s.steps; ++step) pipeline.Step(step);
    double difference = 0;
    pipeline.engine().VisitUnsharded([&](const models::ParameterUnit& unit) {
      for (const models::ParameterSpec& p : unit.parameters) {
        const at::Tensor expected = serial.training.parameters.at(p.name).detach();
        const double error = (p.tensor.detach() - expected).abs().max().item<double>();
        difference = std::max(difference, base::NanIsInfinite(error / expected.abs().max().item<double>()));
      }
    });
    World().AllReduce(comm::BufferOf(absl::MakeSpan(&difference, 1)), comm::ReduceOp::kMax);
    EXPECT_GT(difference, bound) << static_cast<int>(fault);
  }
}

}  // namespace
}  // namespace plait::parity
