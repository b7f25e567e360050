// Blocks of a model as the steps of a layer-parallel solver, alone and with replicated, sharded and split layers, through
// the training library: with converged iterations against one rank that takes block after block, with LibTorch's
// AdamW, in float64; with few iterations against the same iterations on one rank. Guenther, Ruthotto, Schroder, Cyr,
// Gauger: Layer-parallel training of deep residual neural networks, SIAM J. Math. Data Sci. 2, 2020.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "comm/device_mesh.h"
#include "comm/testing/world.h"
#include "mgrit/layer_parallel/layer_parallel.h"
#include "models/gpt/gpt.h"
#include "models/llama/llama.h"
#include "models/odenet/odenet.h"
#include "models/vit/vit.h"
#include "tests/parity/normalized_model.h"
#include "tests/parity/serial_adamw.h"
#include "tools/training/sharded_model.h"
#include "tools/training/solver_control.h"

namespace plait::parity {
namespace {

using comm::testing::World;
using models::Batch;
using odenet::TimeWeights;

constexpr int kSteps = 4, kMicroBatches = 2;
constexpr std::int64_t kLayers = 8, kSamples = 4, kSequence = 8, kVocabulary = 13;
constexpr double kClip = 0.1, kTolerance = 1e-12;
// Two levels are exact after as many iterations as there are coarse points, 4 with this factor, behind the one that
// begins on the coarse level.
constexpr int kFactor = 2, kConverged = 5;
const parallel::ShardedOptimizerOptions kAdamW = {
    .lr = 1e-2, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.1};

using MakeModel = std::function<std::unique_ptr<models::BlockModel>(at::Device device)>;

at::TensorOptions Doubles(at::Device device) { return at::TensorOptions(at::kDouble).device(device); }

std::unique_ptr<models::BlockModel> MakeGpt(at::Device device) {
  at::manual_seed(11);
  return std::make_unique<gpt::Gpt>(gpt::GptOptions{.vocab_size = kVocabulary,
                                                    .block_size = kSequence,
                                                    .n_layer = kLayers,
                                                    .n_head = 2,
                                                    .n_embd = 8,
                                                    .dropout = 0.2,
                                                    .bias = true},
                                    Doubles(device));
}

std::unique_ptr<models::BlockModel> MakeLlama(at::Device device) {
  at::manual_seed(11);
  return std::make_unique<llama::Llama>(llama::LlamaOptions{.vocab_size = kVocabulary,
                                                            .max_seq_len = kSequence,
                                                            .dim = 8,
                                                            .n_layers = kLayers,
                                                            .n_heads = 4,
                                                            .n_kv_heads = 2,
                                                            .hidden = 10},
                                        Doubles(device));
}

std::unique_ptr<models::BlockModel> MakeVit(at::Device device) {
  at::manual_seed(11);
  return std::make_unique<vit::Vit>(vit::VitOptions{.image_size = 4,
                                                    .patch_size = 2,
                                                    .channels = 1,
                                                    .dim = 8,
                                                    .depth = kLayers,
                                                    .heads = 2,
                                                    .head_dim = 4,
                                                    .mlp_dim = 10,
                                                    .classes = 5,
                                                    .dropout = 0.2},
                                    Doubles(device));
}

odenet::OdeNetOptions OdeNetOptionsOf(TimeWeights weights) {
  return {.sample = {3},
          .channels = 4,
          .layers = kLayers,
          .final_time = 4,
          .time_weights = weights,
          .controls = weights == TimeWeights::kSpline ? 3 : 4,
          .classes = 5,
          .time_tikhonov = 0.2};
}

template <TimeWeights weights>
std::unique_ptr<models::BlockModel> MakeOdeNet(at::Device device) {
  at::manual_seed(11);
  return std::make_unique<odenet::OdeNet>(OdeNetOptionsOf(weights), Doubles(device));
}

// Null: another model.
const odenet::OdeNet* AsOdeNet(const models::BlockModel& model) {
  return dynamic_cast<const odenet::OdeNet*>(&model);
}
bool HasOwnWeights(const odenet::OdeNet& net) { return net.options().time_weights == TimeWeights::kPerLayer; }

std::unique_ptr<models::BlockModel> MakeNormalized(at::Device device) {
  at::manual_seed(11);
  return std::make_unique<NormalizedModel>(/*features=*/3, kLayers, /*classes=*/5, Doubles(device));
}

// Micro-batch k of a step, of all ranks. Some targets are ignored.
Batch MakeBatch(const models::BlockModel& model, int step, int k) {
  at::manual_seed(100 + 10 * static_cast<std::uint64_t>(step) + static_cast<std::uint64_t>(k));
  Batch batch;
  if (AsOdeNet(model) != nullptr || dynamic_cast<const NormalizedModel*>(&model) != nullptr) {
    batch = {at::randn({kSamples, 3}, at::kDouble), at::randint(5, {kSamples}, at::kLong)};
    batch.targets[2] = -100;
  } else if (dynamic_cast<const vit::Vit*>(&model) != nullptr) {
    batch = {at::randn({kSamples, 1, 4, 4}, at::kDouble), at::randint(5, {kSamples}, at::kLong)};
    batch.targets[1] = -100;
  } else {
    const at::Tensor text = at::randint(kVocabulary, {kSamples, kSequence + 1}, at::kLong);
    batch = {text.narrow(1, 0, kSequence).contiguous(), text.narrow(1, 1, kSequence).contiguous()};
    batch.targets[0].narrow(0, 0, 3).fill_(-100);
  }
  batch.random.seed = static_cast<std::uint64_t>(10 * step + k);
  return batch;
}

double ValidTargets(const models::BlockModel& model, int step) {
  double count = 0;
  for (int k = 0; k < kMicroBatches; ++k) {
    count += static_cast<double>(MakeBatch(model, step, k).targets.ge(0).sum().item<std::int64_t>());
  }
  return count;
}

SerialTraining SerialRun(const MakeModel& make) {
  const auto model = make(at::kCPU);
  SerialTraining run;
  run.parameters = NamedParameters(model->units());
  const odenet::OdeNet* const net = AsOdeNet(*model);
  SerialAdamW::Decays decays;
  if (net != nullptr)
    decays = [](const std::string& name) { return name[0] == 'l' || name.starts_with("con"); };
  SerialAdamW optimizer(run.parameters, kAdamW, decays);
  for (int step = 0; TrainsSerially() && step < kSteps; ++step) {
    optimizer.ZeroGradients();
    double loss = 0;
    for (int k = 0; k < kMicroBatches; ++k) {
      const at::Tensor part =
          models::RunModel(*model, MakeBatch(*model, step, k)).sum / ValidTargets(*model, step);
      part.backward();
      loss += part.item<double>();
    }
    // Of control points the model's loss has it.
    if (net != nullptr && HasOwnWeights(*net)) net->TimeTikhonov().backward();
    optimizer.Step(kClip);
    run.losses.push_back(loss);
  }
  TakeFromFirstRank(run);
  return run;
}

struct TestSettings final : training::Settings {
  void Bind(training::SettingsTable&) override {}
  absl::Status Check(const std::vector<comm::MeshAxis>& axes) const override { return CheckShared(axes); }
  std::vector<std::string> mesh_axes() const override { return {"lp", "tp"}; }
};

constexpr double kLossScale = 1024;  // of the parallel run; a power of two changes no bit

// Losses on every rank, parameters on rank 0 alone.
SerialTraining ParallelRun(const MakeModel& make, const TestSettings& settings,
                           const comm::Communicator& world, double clip_norm,
                           std::vector<double>* biases = nullptr) {
  const auto axes = *settings.Axes(world.size());
  EXPECT_TRUE(settings.Check(axes).ok()) << settings.Check(axes);
  const auto mesh = *comm::DeviceMesh::Create(world, axes);
  const auto model = make(at::kMeta);
  training::TrainedModel trained = {.model = model.get(), .optimizer = kAdamW};
  if (const odenet::OdeNet* net = AsOdeNet(*model); net != nullptr && HasOwnWeights(*net)) {
    trained.time_tikhonov = net->options().time_tikhonov / net->options().spacing();
  }
  const auto drawn = make(at::kCPU);
  const NamedTensors values = NamedParameters(drawn->units());
  trained.initialize = [&](std::size_t unit) {
    const at::NoGradGuard no_grad;
    const std::vector<models::ParameterUnit> units = model->units();
    for (const models::ParameterSpec& spec : units[unit].parameters) {
      if (!spec.tensor.is_meta()) spec.tensor.copy_(models::LocalPart(values.at(spec.name), spec.placement));
    }
    return absl::OkStatus();
  };
  EXPECT_TRUE(training::SplitLayers(settings, mesh, trained).ok());
  const auto sharded = *training::ShardedModel::Create(settings, mesh, at::kCPU, trained);
  training::SolverControl control(settings.lp, world, /*ranks_on_host=*/world.size());
  control.Begin(*sharded);
  const int copies = mesh.axis("lp").size() * mesh.axis("tp").size();
  const std::int64_t mine = kSamples * copies / world.size(), first = world.rank() / copies * mine;
  SerialTraining run;
  for (int step = 0; step < kSteps; ++step) {
    const double factor = 1 / ValidTargets(*model, step);
    const parallel::PipelineStep done = control.RunMicroBatches(step, [&](int k) {
      Batch batch = MakeBatch(*model, step, k);
      batch.inputs = batch.inputs.narrow(0, first, mine);
      batch.targets = batch.targets.narrow(0, first, mine);
      batch.random.first_sample = first;
      return parallel::PipelineMicroBatch{batch, factor * kLossScale};
    });
    std::vector<data::Scalar> scalars;
    control.TakeStep(scalars);
    if (biases != nullptr) biases->push_back(scalars.back().value);
    double loss = 0;
    for (const models::LossSum& sum : done.losses) loss += factor * sum.sum.item<double>();
    if (world.rank() % copies > 0) loss = 0;  // all copies have the same; a sum of them may be rounded
    world.AllReduce(comm::BufferOf(absl::MakeSpan(&loss, 1)));
    run.losses.push_back(loss);
    EXPECT_GT(sharded->Step({.clip_norm = clip_norm, .loss_scale = kLossScale}).gradient_norm, kClip)
        << "clipping is not tested";
  }
  run.parameters = sharded->WholeParameters();
  return run;
}

struct Setting {
  std::string mesh, strategy = "ddp", checkpoints = "none";
};
void PrintTo(const Setting& s, std::ostream* stream) {
  *stream << s.mesh << " " << s.strategy << ", activation checkpoints: " << s.checkpoints;
}

std::vector<Setting> AllMeshes(int ranks) {
  const std::string all = "lp=" + std::to_string(ranks);
  if (ranks <= 2) return {{all}, {all, "ddp", "full"}};
  if (ranks == 4) {
    return {{all},
            {all, "ddp", "every-2"},
            {"lp=2,dp_replicate=2"},
            {"lp=2,dp_shard=2", "zero1"},
            {"lp=2,dp_shard=2", "zero2"},
            {"lp=2,dp_shard=2", "fsdp"},
            {"lp=2,dp_shard=2", "fsdp", "full"},
            {"lp=2,tp=2"}};
  }
  // Of eight ranks on lp four have no block.
  return {{all}, {"lp=2,dp_replicate=2,tp=2"}, {"lp=2,dp_shard=2,tp=2", "fsdp"}, {"lp=4,dp_shard=2", "fsdp"}};
}

TestSettings SettingsOf(const Setting& setting, int levels, int forward, int backward) {
  TestSettings settings;
  settings.dtype = "float64";
  settings.gradient_accumulation_steps = kMicroBatches;
  settings.mesh = setting.mesh;
  settings.strategy = setting.strategy;
  settings.activation_checkpointing = setting.checkpoints;
  settings.lp = {.force = true,
                 .levels = levels,
                 .cfactor = {kFactor},
                 .iterations = backward,
                 .forward_iterations = forward};
  return settings;
}

struct Subject {
  const char* name;
  MakeModel make;
  std::string without = "none";  // the axes that its meshes do not have

  std::vector<Setting> Meshes(int ranks) const {
    std::vector<Setting> meshes = AllMeshes(ranks);
    std::erase_if(meshes, [&](const Setting& s) { return s.mesh.find(without) != std::string::npos; });
    return meshes;
  }
};
void PrintTo(const Subject& subject, std::ostream* stream) { *stream << subject.name; }

class OfModel : public testing::TestWithParam<Subject> {};

TEST_P(OfModel, ConvergedIterationsAreOneRankWithoutASolver) {
  const SerialTraining serial = SerialRun(GetParam().make);
  for (const Setting& setting : GetParam().Meshes(World().size())) {
    const TestSettings settings = SettingsOf(setting, /*levels=*/2, kConverged, kConverged);
    const SerialTraining run = ParallelRun(GetParam().make, settings, World(), kClip);
    for (int step = 0; step < kSteps; ++step) {
      EXPECT_NEAR(run.losses[step] / serial.losses[step], 1, kTolerance) << testing::PrintToString(setting);
    }
    if (World().rank() == 0) {
      EXPECT_LE(Difference(run, serial), kTolerance) << testing::PrintToString(setting);
    }
  }
}

// The least difference that few iterations make here.
constexpr double kVisible = 1e-6;
// The norm of all gradients is a sum over ranks.
constexpr double kNoClipping = 0;

TEST_P(OfModel, FewIterationsAreThoseOfOneRank) {
  const TestSettings alone = SettingsOf({"lp=1"}, /*levels=*/3, 2, 1);
  const SerialTraining serial = SerialRun(GetParam().make);
  SerialTraining one;
  if (World().rank() == 0) {
    one = ParallelRun(GetParam().make, alone, comm::Communicator::Self(), kNoClipping);
    EXPECT_GT(Difference(one, serial), kVisible) << "the solver is not tested";
  }
  for (const Setting& setting : GetParam().Meshes(World().size())) {
    const TestSettings settings = SettingsOf(setting, /*levels=*/3, 2, 1);
    const SerialTraining run = ParallelRun(GetParam().make, settings, World(), kNoClipping);
    if (World().rank() > 0) continue;
    // Sums of other axes are rounded.
    const double bound = setting.mesh.find(',') == std::string::npos ? 0 : kTolerance;
    EXPECT_LE(Difference(run, one), bound) << testing::PrintToString(setting);
  }
}

// Gradients of step 0 by autograd, `blocks` running the blocks of the model.
using RunBlocks =
    std::function<at::Tensor(models::BlockModel& model, const at::Tensor& hidden, const Batch& batch)>;
std::vector<at::Tensor> GradientsOfStep0(const MakeModel& make, const RunBlocks& blocks) {
  const auto model = make(at::kCPU);
  for (int k = 0; k < kMicroBatches; ++k) {
    const Batch batch = MakeBatch(*model, 0, k);
    const at::Tensor hidden = model->Prologue(batch, {.random = batch.random}).hidden;
    const models::LossSum loss = model->Epilogue({blocks(*model, hidden, batch)}, batch);
    (loss.sum / ValidTargets(*model, 0)).backward();
  }
  std::vector<at::Tensor> gradients;
  for (const auto& [name, parameter] : NamedParameters(model->units())) {
    if (parameter.requires_grad()) gradients.push_back(parameter.grad());
  }
  return gradients;
}

double NormOf(const std::vector<at::Tensor>& tensors) {
  double squares = 0;
  for (const at::Tensor& t : tensors) squares += (t * t).sum().item<double>();
  return std::sqrt(squares);
}

// |biased - exact| / |exact| of step 0, of one rank, without the training library.
double BiasOf(const MakeModel& make, const mgrit::LayerParallelOptions& options) {
  const auto serial = [](models::BlockModel& model, const at::Tensor& hidden, const Batch& batch) {
    models::BlockState state = {hidden};
    for (const auto& block : model.blocks()) state = block->Forward(state, {.random = batch.random});
    return state.hidden;
  };
  std::unique_ptr<mgrit::LayerParallel> net;
  const auto solved = [&](models::BlockModel& model, const at::Tensor& hidden, const Batch& batch) {
    if (net == nullptr) {
      mgrit::LayerParallel::TiedParameters tied;
      for (const auto& [name, parameter] : NamedParameters(model.units())) {
        if (name.starts_with("controls.")) tied.emplace_back(name, parameter);
      }
      net = std::make_unique<mgrit::LayerParallel>(
          comm::Communicator::Self(), [&](std::int64_t step) { return model.blocks()[step]; }, kLayers,
          static_cast<double>(kLayers), options, tied);
    }
    return net->Forward(hidden, {.random = batch.random});
  };
  const std::vector<at::Tensor> exact = GradientsOfStep0(make, serial);
  std::vector<at::Tensor> difference = GradientsOfStep0(make, solved);
  for (std::size_t i = 0; i < exact.size(); ++i) difference[i] = difference[i] - exact[i];
  return NormOf(difference) / NormOf(exact);
}

TEST_P(OfModel, TheBiasIsTheDistanceFromTheExactGradientWhichTheStepTakes) {
  const SerialTraining serial = SerialRun(GetParam().make);
  const mgrit::LayerParallelOptions options = SettingsOf({"lp=1"}, /*levels=*/2, 2, 1).lp.Options();
  std::vector<double> expected;
  if (World().rank() == 0) expected.push_back(BiasOf(GetParam().make, options));
  TakeFromFirstRank(expected);
  EXPECT_GT(expected[0], kVisible);
  for (const Setting& setting : GetParam().Meshes(World().size())) {
    TestSettings settings = SettingsOf(setting, /*levels=*/2, 2, 1);
    settings.lp.bias_limit = 0.5;
    settings.lp.bias_every = 1;
    std::vector<double> biases;
    const SerialTraining run = ParallelRun(GetParam().make, settings, World(), kClip, &biases);
    EXPECT_NEAR(biases[0] / expected[0], 1, 1e-9) << testing::PrintToString(setting);
    if (World().rank() == 0) {
      EXPECT_LE(Difference(run, serial), kTolerance) << testing::PrintToString(setting);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, OfModel,
    testing::Values(Subject{"Gpt", MakeGpt}, Subject{"Llama", MakeLlama}, Subject{"Vit", MakeVit},
                    Subject{"OdeNet", MakeOdeNet<TimeWeights::kPerLayer>, "tp"},
                    Subject{"OdeNetPiecewise", MakeOdeNet<TimeWeights::kPiecewise>, "tp"},
                    Subject{"OdeNetSpline", MakeOdeNet<TimeWeights::kSpline>, "tp"},
                    // Data-parallel ranks would each have statistics of their part of a batch.
                    Subject{"Normalized", MakeNormalized, ","}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace plait::parity
