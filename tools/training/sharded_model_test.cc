// Models train on a device as on the host. The test device is in host memory but as strict as a GPU: tensors of host
// and device do not mix, and synchronizations are counted.
#include "tools/training/sharded_model.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/testing/world.h"
#include "models/cnn/cnn.h"
#include "models/gpt/gpt.h"
#include "models/gru/layer_parallel/layer_parallel_gru.h"
#include "models/gru/sequence_classifier.h"
#include "models/llama/llama.h"
#include "models/mlp/mlp.h"
#include "models/sampling/sampler.h"
#include "parallel/plan/memory_plan.h"
#include "tools/device/testing/host_device.h"
#include "tools/training/device_sums.h"

namespace plait::training {
namespace {

struct TestSettings final : Settings {
  bool solves_parallel = false;
  void Bind(SettingsTable&) override {}
  absl::Status Check(const std::vector<comm::MeshAxis>&) const override { return absl::OkStatus(); }
  std::vector<std::string> mesh_axes() const override {
    return solves_parallel ? std::vector<std::string>{"lp"} : std::vector<std::string>();
  }
  std::string default_axis() const override { return solves_parallel ? "lp" : ""; }
  bool blocks_are_steps() const override { return false; }
};

enum class Kind { kMlp, kCnn, kGpt, kLlama, kGru, kLayerParallelGru };
constexpr Kind kKinds[] = {Kind::kMlp,   Kind::kCnn, Kind::kGpt,
                           Kind::kLlama, Kind::kGru, Kind::kLayerParallelGru};
constexpr std::int64_t kSteps = 16;  // of a sequence

gru::GruConfig GruCellConfig() {
  return {.input = 3, .hidden = 6, .layers = 2, .kind = gru::GruKind::kImplicit};
}

std::unique_ptr<models::BlockModel> ModelOf(Kind kind) {
  const at::TensorOptions options = at::TensorOptions(at::kDouble).device(at::kMeta);
  if (kind == Kind::kMlp) return std::make_unique<mlp::Mlp>(mlp::MlpOptions{.widths = {5, 7, 3}}, options);
  if (kind == Kind::kCnn) {
    return std::make_unique<cnn::Cnn>(
        cnn::CnnOptions{.rows = 8, .columns = 8, .hidden = 9, .dropout1 = 0, .dropout2 = 0}, options);
  }
  if (kind == Kind::kGpt) {
    gpt::GptOptions gpt;
    gpt.vocab_size = 11;
    gpt.block_size = 8;
    gpt.n_layer = 2;
    gpt.n_head = 2;
    gpt.n_embd = 8;
    return std::make_unique<gpt::Gpt>(gpt, options);
  }
  if (kind == Kind::kLlama) {
    return std::make_unique<llama::Llama>(llama::LlamaOptions{.vocab_size = 11,
                                                              .max_seq_len = 8,
                                                              .dim = 8,
                                                              .n_layers = 2,
                                                              .n_heads = 2,
                                                              .n_kv_heads = 1,
                                                              .hidden = 12},
                                          options);
  }
  gru::SequenceClassifierOptions gru;
  gru.gru.cell = GruCellConfig();
  gru.gru.final_time = 4.0;
  gru.classes = 4;
  return std::make_unique<gru::SequenceClassifier>(gru, options);
}

// This rank's micro-batch k, of 2 or 3 samples.
models::Batch BatchOf(Kind kind, int step, int k, int rank) {
  at::manual_seed(1000 * static_cast<std::uint64_t>(step) + 10 * static_cast<std::uint64_t>(k) +
                  static_cast<std::uint64_t>(rank));
  const std::int64_t samples = 2 + k % 2;
  if (kind == Kind::kMlp) return {at::randn({samples, 5}, at::kDouble), at::randn({samples, 3}, at::kDouble)};
  if (kind == Kind::kCnn) {
    return {at::randn({samples, 1, 8, 8}, at::kDouble), at::randint(10, {samples}, at::kLong)};
  }
  if (kind == Kind::kGpt || kind == Kind::kLlama)
    return {at::randint(11, {samples, 8}, at::kLong), at::randint(11, {samples, 8}, at::kLong)};
  // Along lp all ranks have the same samples.
  if (kind == Kind::kLayerParallelGru && rank > 0) return BatchOf(kind, step, k, 0);
  return {at::randn({samples, kSteps, 3}, at::kDouble), at::randint(4, {samples}, at::kLong)};
}

// A model in the engine, with what runs its block.
class Subject {
 public:
  // `strategy`: "fsdp offloaded": with parameters and optimizer state in files.
  Subject(Kind kind, at::Device device, const std::string& strategy, int micro_batches = 3)
      : kind_(kind), model_(ModelOf(kind)) {
    settings_.gradient_accumulation_steps = micro_batches;
    settings_.strategy = strategy.substr(0, strategy.find(' '));
    settings_.offload_params = settings_.strategy != strategy;
    if (settings_.offload_params) settings_.offload = testing::TempDir();
    settings_.dtype = "float64";
    settings_.solves_parallel = kind == Kind::kLayerParallelGru;
    const comm::Communicator& world = comm::testing::World();
    mesh_.emplace(*comm::DeviceMesh::Create(world, *settings_.Axes(world.size())));
    TrainedModel trained = {.model = model_.get(), .optimizer = {.lr = 1e-3}};
    if (settings_.solves_parallel) trained.run_block = LayerParallel(device);
    absl::StatusOr<std::unique_ptr<ShardedModel>> sharded =
        ShardedModel::Create(settings_, *mesh_, device, trained);
    EXPECT_TRUE(sharded.ok()) << sharded.status();
    sharded_ = *std::move(sharded);
    device_ = device;
  }
  ~Subject() { sharded_->WaitForParameters(); }

  double Step(int step) {
    DeviceSums sums(1, device_);
    const parallel::PipelineStep done = sharded_->RunMicroBatches([&](int k) {
      return parallel::PipelineMicroBatch{
          sharded_->OnDevice(BatchOf(kind_, step, k, comm::testing::World().rank())), 1 / 10.0};
    });
    for (const models::LossSum& loss : done.losses) sums.Add(0, loss.sum);
    EXPECT_TRUE(sharded_->Step({.clip_norm = 1}).status.ok());
    return sums.Read()[0];
  }
  at::Tensor Output() {
    const at::NoGradGuard no_grad;
    return sharded_->Output(BatchOf(kind_, 99, 0, 0));
  }

  // Tokens generated by a GPT; empty for other models.
  std::vector<std::int64_t> Tokens() {
    if (kind_ != Kind::kGpt) return {};
    const at::NoGradGuard no_grad;
    sampling::Sampler sampler({.seed = 3});
    std::vector<std::int64_t> tokens;
    sharded_->Forward([&](const models::BlockRunner& blocks) {
      tokens = *sampling::Generate({*model_, 8}, {1, 2}, 12, sampler, {}, blocks);
    });
    return tokens;
  }

 private:
  models::BlockRunner LayerParallel(at::Device device) {
    const auto module = static_cast<gru::SequenceClassifier&>(*model_).gru().module();
    mgrit::LayerParallelOptions options = mgrit::MakeLayerParallelOptions(2, 4, 2, 2);
    options.forward.tolerance = options.backward.tolerance = 1e-300;  // norms are looked at
    return [this, module, options, device](std::size_t, const models::BlockState& input, const auto&) {
      if (solver_ == nullptr) {
        solver_ = std::make_unique<gru::LayerParallelGru>(
            [module] { return module->parameters(); }, GruCellConfig(),
            at::TensorOptions(at::kDouble).device(device), mesh_->axis("lp"), kSteps, 4.0, options);
      }
      return models::BlockState{solver_->Forward(input.hidden).select(0, 1)};
    };
  }

  Kind kind_;
  at::Device device_ = at::kCPU;
  TestSettings settings_;
  std::unique_ptr<models::BlockModel> model_;
  std::optional<comm::DeviceMesh> mesh_;
  std::unique_ptr<gru::LayerParallelGru> solver_;
  std::unique_ptr<ShardedModel> sharded_;
};

// The same operations in another order, in float64; Adam divides each gradient by its size plus 1e-8, so that
// a rounding error of 1e-16 becomes one of 1e-8 of a step of 1e-3 at most.
constexpr double kTolerance = 1e-10;

class OnDevice : public testing::TestWithParam<Kind> {};

TEST_P(OnDevice, TrainsAsOnTheHost) {
  for (const std::string strategy : {"ddp", "zero1", "zero2", "fsdp", "fsdp offloaded"}) {
    if (GetParam() == Kind::kLayerParallelGru && strategy != "ddp") continue;
    Subject host(GetParam(), at::kCPU, strategy), device(GetParam(), device::testing::HostDevice(), strategy);
    for (int step = 0; step < 3; ++step) {
      const double expected = host.Step(step), actual = device.Step(step);
      EXPECT_NEAR(actual, expected, kTolerance * expected) << strategy << ", step " << step;
    }
    const at::Tensor expected = host.Output(), actual = device.Output();
    EXPECT_FALSE(actual.is_cpu());
    EXPECT_EQ(device.Tokens(), host.Tokens()) << strategy;
    EXPECT_TRUE(actual.cpu().allclose(expected, kTolerance, kTolerance)) << strategy;
  }
}

// With several ranks the host carries the messages of this device.
TEST_P(OnDevice, WaitsOncePerStepForLossAndNorm) {
  if (comm::testing::World().size() > 1) return;
  device::testing::DeviceTraffic& traffic = device::testing::TrafficOfHostDevice();
  for (const int micro_batches : {1, 5}) {
    Subject subject(GetParam(), device::testing::HostDevice(), "fsdp", micro_batches);
    subject.Step(0);
    traffic.Reset();
    subject.Step(1);
    // Residual norms of the layer-parallel solver: one read per iteration but the first, which has none, of
    // the forward and the backward solve.
    const int residuals = GetParam() == Kind::kLayerParallelGru ? 2 * micro_batches : 0;
    EXPECT_EQ(traffic.to_host, 2 + residuals) << micro_batches;
    EXPECT_EQ(traffic.pinned, 2 * micro_batches);
    EXPECT_EQ(traffic.pageable, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, OnDevice, testing::ValuesIn(kKinds));

// What the optimizer allocates, for each number of moments.
TEST(MemoryRequest, HasTheMomentsOfTheOptimizer) {
  const comm::Communicator& world = comm::testing::World();
  TestSettings settings;
  settings.dtype = "float64";  // the models'
  const comm::DeviceMesh mesh = *comm::DeviceMesh::Create(world, *settings.Axes(world.size()));
  const parallel::ShardedOptimizerOptions kinds[] = {
      {.kind = parallel::OptimizerKind::kAdamW},
      {.kind = parallel::OptimizerKind::kSgd},
      {.kind = parallel::OptimizerKind::kSgd, .momentum = 0.9}};
  for (const parallel::ShardedOptimizerOptions& optimizer : kinds) {
    const std::unique_ptr<models::BlockModel> model = ModelOf(Kind::kMlp);
    const TrainedModel trained = {.model = model.get(), .optimizer = optimizer};
    const auto request = MemoryRequest(settings, mesh, at::kCPU, trained);
    ASSERT_TRUE(request.ok()) << request.status();
    const auto sharded = ShardedModel::Create(settings, mesh, at::kCPU, trained);
    ASSERT_TRUE(sharded.ok()) << sharded.status();
    EXPECT_EQ(parallel::PlanMemory(*request).moment_bytes, (*sharded)->optimizer().moment_bytes())
        << "momentum " << optimizer.momentum;
    (*sharded)->WaitForParameters();
  }
}

}  // namespace
}  // namespace plait::training
