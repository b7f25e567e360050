// Models whose layers are split over tp, alone and with sharded states, with and without sequence parallelism,
// against one rank with LibTorch's AdamW, in float64: losses, gradient norms and every parameter. Sizes do not
// divide: the vocabulary, the hidden width, and key heads for four ranks. Shoeybi et al., arXiv:1909.08053;
// Korthikanti et al., arXiv:2205.05198.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/nan_is_infinite.h"
#include "comm/device_mesh.h"
#include "comm/testing/world.h"
#include "models/gpt/gpt.h"
#include "models/llama/llama.h"
#include "models/vit/vit.h"
#include "parallel/context/data_mesh.h"
#include "parallel/context/local_batch.h"
#include "parallel/optim/sharded_optimizer.h"
#include "parallel/sharding/data_parallel.h"
#include "parallel/tensor/parallelize.h"
#include "tests/parity/serial_adamw.h"

namespace plait::parity {
namespace {

using comm::testing::World;
using models::Batch;
using models::BlockState;

constexpr int kMostSteps = 10;
constexpr std::int64_t kSamples = 4, kSequence = 8, kVocabulary = 13;
constexpr double kClip = 0.1, kTolerance = 1e-12;
parallel::ShardedOptimizerOptions AdamW(double lr) {
  return {.lr = lr, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.1};
}

using MakeModel = std::function<std::shared_ptr<models::SplitModuleModel>()>;

std::shared_ptr<models::SplitModuleModel> MakeGptOf(std::int64_t vocabulary) {
  at::manual_seed(11);
  return std::make_shared<gpt::Gpt>(gpt::GptOptions{.vocab_size = vocabulary,
                                                    .block_size = kSequence,
                                                    .n_layer = 2,
                                                    .n_head = 8,
                                                    .n_embd = 16,
                                                    .dropout = 0.2,
                                                    .bias = true},
                                    at::kDouble);
}
std::shared_ptr<models::SplitModuleModel> MakeGpt() { return MakeGptOf(kVocabulary); }

std::shared_ptr<models::SplitModuleModel> MakeLlama() {
  at::manual_seed(11);
  return std::make_shared<llama::Llama>(llama::LlamaOptions{.vocab_size = kVocabulary,
                                                            .max_seq_len = kSequence,
                                                            .dim = 16,
                                                            .n_layers = 2,
                                                            .n_heads = 8,
                                                            .n_kv_heads = 2,
                                                            .hidden = 11},
                                        at::kDouble);
}

std::shared_ptr<models::SplitModuleModel> MakeVitOf(vit::Pool pool) {
  at::manual_seed(11);
  return std::make_shared<vit::Vit>(vit::VitOptions{.image_size = 8,
                                                    .patch_size = 2,
                                                    .channels = 1,
                                                    .dim = 12,
                                                    .depth = 2,
                                                    .heads = 8,
                                                    .head_dim = 2,
                                                    .mlp_dim = 19,
                                                    .classes = 5,
                                                    .pool = pool,
                                                    .dropout = 0.2},
                                    at::kDouble);
}
std::shared_ptr<models::SplitModuleModel> MakeVit() { return MakeVitOf(vit::Pool::kMean); }
std::shared_ptr<models::SplitModuleModel> MakeClassTokenVit() { return MakeVitOf(vit::Pool::kClassToken); }

// The same model with values for a comparison of roundings.
MakeModel DrawnIn(at::ScalarType type, const MakeModel& make) {
  return [type, make] {
    auto model = make();
    DrawIn(type, NamedParameters(model->units()));
    return model;
  };
}

// Some targets are ignored: ranks of a batch have unequal counts.
Batch MakeBatch(const models::SplitModuleModel& model, int step, std::int64_t seq) {
  at::manual_seed(1 + step);
  if (dynamic_cast<const vit::Vit*>(&model) != nullptr) {
    const at::ScalarType type = model.units()[0].parameters[0].tensor.scalar_type();
    Batch images = {at::randn({kSamples, 1, 8, 8}, at::kDouble).to(type),
                    at::randint(5, {kSamples}, at::kLong)};
    images.targets[1] = -100;
    images.random.seed = static_cast<std::uint64_t>(step);
    return images;
  }
  const at::Tensor text = at::randint(kVocabulary, {kSamples, seq + 1}, at::kLong);
  Batch batch = {text.narrow(1, 0, seq).contiguous(), text.narrow(1, 1, seq).contiguous()};
  batch.targets[0].narrow(0, 0, 3).fill_(-100);
  batch.random.seed = static_cast<std::uint64_t>(step);
  return batch;
}

std::int64_t TokensOfSample(const models::SplitModuleModel& model) {
  const auto* const vit = dynamic_cast<const vit::Vit*>(&model);
  return vit == nullptr ? 0 : vit->options().tokens();
}

double ValidTargets(const Batch& batch) {
  return static_cast<double>(batch.targets.ge(0).sum().item<std::int64_t>());
}

SerialTraining SerialRun(const MakeModel& make, std::int64_t seq = kSequence, double lr = 1e-2,
                         double perturbation = 0) {
  const auto model = make();
  SerialTraining run;
  run.parameters = NamedParameters(model->units());
  for (const auto& [name, parameter] : run.parameters) Perturb({parameter}, perturbation);
  SerialAdamW optimizer(run.parameters, AdamW(lr));
  for (int step = 0; TrainsSerially() && step < Steps(kMostSteps); ++step) {
    optimizer.ZeroGradients();
    const Batch batch = MakeBatch(*model, step, seq);
    const at::Tensor loss = models::RunModel(*model, batch).sum / ValidTargets(batch);
    loss.backward();
    optimizer.Step(kClip);
    run.losses.push_back(loss.item<double>());
  }
  TakeFromFirstRank(run);
  return run;
}

// Planted bugs that go on without a word.
enum class Fault {
  kNone,
  kNormNotSummed,     // under sequence parallelism, the gradient of a norm is this rank's part
  kReplicasInNorm,    // the norm for clipping counts what several ranks hold several times
  kBiasOfEachRank,    // the bias of a row layer is added by each rank, and so comes tp times
  kPaddedVocabulary,  // tokens that there are not, so that ranks have equally many, are classes of the softmax
};
constexpr const char* kRowBias = "transformer.h.0.mlp.c_proj.bias";

struct Setting {
  std::vector<comm::MeshAxis> mesh;
  bool sequence_parallel = false;
  parallel::Strategy strategy = parallel::Strategy::kDdp;
  Fault fault = Fault::kNone;
  context_parallel::ContextKind context = context_parallel::ContextKind::kRing;
  double lr = 1e-2;
};

std::string TextOf(const Setting& s) {
  std::string text;
  for (const comm::MeshAxis& axis : s.mesh) absl::StrAppend(&text, axis.name, axis.size, " ");
  return absl::StrCat(text, parallel::Name(s.strategy), s.sequence_parallel ? " sp" : "");
}

std::vector<models::ParameterUnit> UnitsWith(Fault fault, const models::SplitModuleModel& model) {
  std::vector<models::ParameterUnit> units = model.units();
  for (models::ParameterUnit& unit : units) {
    for (models::ParameterSpec& p : unit.parameters) {
      if (fault == Fault::kNormNotSummed && p.name == "transformer.h.0.ln_1.weight")
        p.placement.partial.clear();
      if (fault == Fault::kReplicasInNorm) p.placement.replicated.clear();
    }
  }
  return units;
}

at::Tensor ParameterOf(const models::SplitModuleModel& model, const std::string& name) {
  return NamedParameters(model.units()).at(name);
}

// A block's forward pass, with the fault.
BlockState ForwardOf(const models::SplitModuleModel& model, std::size_t block, const BlockState& input,
                     const models::BlockContext& context, Fault fault, int tp) {
  BlockState output = model.blocks()[block]->Forward(input, context);
  if (fault == Fault::kBiasOfEachRank && block == 0) {
    output.hidden = output.hidden + (tp - 1) * ParameterOf(model, kRowBias);
  }
  return output;
}

// The largest relative difference of losses and parameters.
double Difference(const MakeModel& make, const SerialTraining& serial, const Setting& setting,
                  std::int64_t seq = kSequence) {
  double largest = 0;
  const auto mesh = *comm::DeviceMesh::Create(World(), setting.mesh);
  const auto model = make();
  const int tp = mesh.axis("tp").size();
  EXPECT_TRUE(tensor_parallel::Parallelize(*model, mesh, tensor_parallel::DefaultPlan(*model, tp),
                                           {.sequence_parallel = setting.sequence_parallel})
                  .ok());
  const comm::Communicator cp = mesh.Has("cp") ? mesh.axis("cp") : comm::Communicator::Self();
  const context_parallel::ContextAxis context(cp, setting.context);
  const auto dp = *parallel::DataParallel::Create(*context_parallel::DataMesh(mesh, setting.strategy),
                                                  UnitsWith(setting.fault, *model),
                                                  {.strategy = setting.strategy, .part_bytes = 512});
  parallel::ShardedOptimizer optimizer(*dp, AdamW(setting.lr));
  const auto run = [&](std::size_t block, const BlockState& x, const models::BlockContext& context) {
    return dp->Run(
        block, [&](const BlockState& in) { return ForwardOf(*model, block, in, context, setting.fault, tp); },
        x);
  };
  const int copies = tp * cp.size(), data_ranks = World().size() / copies,
            data_rank = World().rank() / copies;
  for (int step = 0; step < Steps(kMostSteps); ++step) {
    Batch batch = MakeBatch(*model, step, seq);
    const double valid = ValidTargets(batch);
    const std::int64_t mine = kSamples / data_ranks;
    batch.inputs = batch.inputs.narrow(0, data_rank * mine, mine);
    batch.targets = batch.targets.narrow(0, data_rank * mine, mine);
    batch.random.first_sample = data_rank * mine;
    batch = context_parallel::LocalBatch(context, batch, TokensOfSample(*model));
    const at::Tensor part = dp->Forward([&] { return models::RunModel(*model, batch, run).sum / valid; });
    dp->Backward(part);
    const auto result = optimizer.Step({.clip_norm = kClip});
    EXPECT_GT(result.gradient_norm, kClip) << "clipping is not tested";
    // Ranks along tp have the same loss.
    double loss = part.item<double>() / tp;
    World().AllReduce(comm::BufferOf(absl::MakeSpan(&loss, 1)));
    largest = std::max(largest, base::NanIsInfinite(std::abs(loss / serial.losses[step] - 1)));
  }
  dp->VisitUnsharded([&](const models::ParameterUnit& unit) {
    if (setting.fault == Fault::kPaddedVocabulary) return;  // has other shapes
    for (const models::ParameterSpec& p : unit.parameters) {
      const at::Tensor expected = models::LocalPart(serial.parameters.at(p.name).detach(), p.placement);
      const double difference = (p.tensor.detach() - expected).abs().max().item<double>();
      largest = std::max(largest, base::NanIsInfinite(difference / expected.abs().max().item<double>()));
    }
  });
  World().AllReduce(comm::BufferOf(absl::MakeSpan(&largest, 1)), comm::ReduceOp::kMax);
  return largest;
}

std::vector<Setting> Settings() {
  using parallel::Strategy;
  std::vector<Setting> settings;
  const int ranks = World().size();
  for (const bool sequence : {false, true}) {
    settings.push_back({{{"tp", ranks}}, sequence});
    if (ranks < 4) continue;
    settings.push_back({{{"dp_replicate", ranks / 2}, {"tp", 2}}, sequence});
    for (const Strategy strategy : {Strategy::kZero1, Strategy::kZero2, Strategy::kFsdp}) {
      settings.push_back({{{"dp_shard", ranks / 2}, {"tp", 2}}, sequence, strategy});
    }
    if (ranks < 8) continue;
    settings.push_back({{{"dp_replicate", 2}, {"dp_shard", 2}, {"tp", 2}}, sequence, Strategy::kFsdp});
    settings.push_back({{{"dp_shard", 2}, {"tp", 4}}, sequence, Strategy::kFsdp});
  }
  return settings;
}

void ExpectAllSettings(const MakeModel& make) {
  const SerialTraining serial = SerialRun(make);
  for (const Setting& setting : Settings())
    EXPECT_LE(Difference(make, serial, setting), kTolerance) << TextOf(setting);
}

// Between two runs in float32; see RoundingBound.
double FloatBound(const MakeModel& make, std::int64_t seq) {
  const MakeModel drawn = DrawnIn(at::kDouble, make);
  const double growth =
      Difference(SerialRun(drawn, seq, kRoundingLr, kPerturbation), SerialRun(drawn, seq, kRoundingLr)) /
      kPerturbation;
  return RoundingBound(Steps(kMostSteps), at::kFloat, growth);
}

void ExpectInFloat32(const MakeModel& make, const std::vector<Setting>& settings,
                     std::int64_t seq = kSequence) {
  const double bound = FloatBound(make, seq);
  const MakeModel drawn = DrawnIn(at::kFloat, make);
  const SerialTraining serial = SerialRun(drawn, seq, kRoundingLr);
  for (Setting setting : settings) {
    setting.lr = kRoundingLr;
    EXPECT_LE(Difference(drawn, serial, setting, seq), bound) << TextOf(setting);
  }
}

TEST(TensorParallel, EveryModelInFloat32) {
  for (const MakeModel& make : {MakeModel(MakeGpt), MakeModel(MakeLlama), MakeModel(MakeVit)}) {
    ExpectInFloat32(make, Settings());
  }
}

TEST(TensorParallel, GptIsOneRank) { ExpectAllSettings(MakeGpt); }
TEST(TensorParallel, LlamaIsOneRank) { ExpectAllSettings(MakeLlama); }
TEST(TensorParallel, VitIsOneRank) { ExpectAllSettings(MakeVit); }

// Sequences of 7 tokens, which no number of chunks divides, alone and with sharded states and split layers.
void ExpectSplitSequences(const MakeModel& make, bool parts_divide = true) {
  constexpr std::int64_t kTokens = 7;
  const SerialTraining serial = SerialRun(make, kTokens);
  const int ranks = World().size();
  std::vector<Setting> settings = {{{{"cp", ranks}, {"tp", 1}}},
                                   {{{"cp", ranks}, {"tp", 1}}, false, parallel::Strategy::kFsdp}};
  if (ranks >= 4) {
    settings.push_back({{{"dp_shard", ranks / 2}, {"cp", 2}, {"tp", 1}}, false, parallel::Strategy::kFsdp});
    settings.push_back({{{"dp_replicate", ranks / 4}, {"cp", 2}, {"tp", 2}}, true});
  }
  if (ranks >= 8) {
    settings.push_back({{{"dp_shard", 2}, {"cp", 2}, {"tp", 2}}, true, parallel::Strategy::kFsdp});
    settings.push_back({{{"dp_shard", 2}, {"cp", 2}, {"tp", 2}}, false, parallel::Strategy::kZero2});
    settings.push_back(
        {{{"dp_replicate", 2}, {"dp_shard", 2}, {"cp", 2}, {"tp", 1}}, false, parallel::Strategy::kFsdp});
  }
  using context_parallel::ContextKind;
  for (Setting& setting : settings) {
    setting.sequence_parallel = setting.sequence_parallel && parts_divide;
    for (const ContextKind kind : {ContextKind::kRing, ContextKind::kUlysses}) {
      setting.context = kind;
      EXPECT_LE(Difference(make, serial, setting, kTokens), kTolerance)
          << TextOf(setting) << (kind == ContextKind::kRing ? " ring" : " ulysses");
    }
  }
}

TEST(ContextParallel, GptIsOneRank) { ExpectSplitSequences(MakeGpt); }
TEST(ContextParallel, LlamaIsOneRank) { ExpectSplitSequences(MakeLlama); }
// 16 tokens and their mean, or 17.
TEST(ContextParallel, VitIsOneRank) {
  ExpectSplitSequences(MakeVit);
  ExpectSplitSequences(MakeClassTokenVit, /*parts_divide=*/false);
}

TEST(ContextParallel, EveryModelInFloat32) {
  const Setting ring = {.mesh = {{"cp", World().size()}, {"tp", 1}}};
  Setting ulysses = ring;
  ulysses.context = context_parallel::ContextKind::kUlysses;
  for (const MakeModel& make : {MakeModel(MakeGpt), MakeModel(MakeLlama), MakeModel(MakeVit)}) {
    ExpectInFloat32(make, {ring, ulysses}, /*seq=*/7);
  }
}

// The model of kVocabulary tokens with rows of zeros for further ones.
std::shared_ptr<models::SplitModuleModel> MakePaddedGpt() {
  constexpr std::int64_t kPadded = 16;  // which every number of ranks here divides
  auto model = MakeGptOf(kPadded);
  DrawIn(at::kDouble, NamedParameters(model->units()));
  const at::NoGradGuard no_grad;
  ParameterOf(*model, "transformer.wte.weight").narrow(0, kVocabulary, kPadded - kVocabulary).zero_();
  return model;
}

// Each is above the bound of float32, and so of float64.
TEST(TensorParallel, PlantedBugsAreSeen) {
  const MakeModel drawn = DrawnIn(at::kDouble, MakeGpt);
  const SerialTraining serial = SerialRun(drawn, kSequence, kRoundingLr);
  const double bound = FloatBound(MakeGpt, kSequence);
  const auto difference = [&](Fault fault, bool sequence, const MakeModel& make) {
    return Difference(make, serial,
                      {.mesh = {{"dp_replicate", World().size() / 2}, {"tp", 2}},
                       .sequence_parallel = sequence,
                       .fault = fault,
                       .lr = kRoundingLr});
  };
  EXPECT_LE(difference(Fault::kNone, true, drawn), kTolerance);
  EXPECT_GT(difference(Fault::kNormNotSummed, true, drawn), bound);
  EXPECT_GT(difference(Fault::kReplicasInNorm, false, drawn), bound);
  EXPECT_GT(difference(Fault::kBiasOfEachRank, false, drawn), bound);
  EXPECT_GT(difference(Fault::kPaddedVocabulary, false, MakePaddedGpt), bound);
}

}  // namespace
}  // namespace plait::parity
