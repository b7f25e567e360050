// A model whose blocks are the steps of a layer-parallel solver, on a device: relaxation batches blocks, and work is
// timed on the device. (A test device in host memory: sharded_model_test.cc.)
#include <ATen/Context.h>
#include <ATen/ops/randint.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/testing/world.h"
#include "models/gpt/gpt.h"
#include "models/llama/llama.h"
#include "tools/device/testing/host_device.h"
#include "tools/training/sharded_model.h"
#include "tools/training/solver_control.h"
#include "tools/training/step_work.h"
#include "tools/training/testing/layer_parallel_settings.h"

namespace plait::training {
namespace {

constexpr std::int64_t kBlocks = 16, kTokens = 11, kSeq = 8;

LayerParallelTestSettings Solving(const std::string& strategy) {
  LayerParallelTestSettings settings;
  settings.strategy = strategy;
  return settings;
}

std::unique_ptr<models::BlockModel> MakeModel(bool llama) {
  const at::TensorOptions options = at::TensorOptions(at::kDouble).device(at::kMeta);
  if (llama) {
    return std::make_unique<llama::Llama>(llama::LlamaOptions{.vocab_size = kTokens,
                                                              .max_seq_len = kSeq,
                                                              .dim = 8,
                                                              .n_layers = kBlocks,
                                                              .n_heads = 2,
                                                              .n_kv_heads = 1,
                                                              .hidden = 12},
                                          options);
  }
  gpt::GptOptions gpt;
  gpt.vocab_size = kTokens;
  gpt.block_size = kSeq;
  gpt.n_layer = kBlocks;
  gpt.n_head = 2;
  gpt.n_embd = 8;
  return std::make_unique<gpt::Gpt>(gpt, options);
}

class Subject {
 public:
  Subject(bool llama, at::Device device, const LayerParallelTestSettings& settings)
      : model_(MakeModel(llama)) {
    const comm::Communicator& world = comm::testing::World();
    mesh_.emplace(*comm::DeviceMesh::Create(world, *settings.Axes(world.size())));
    absl::StatusOr<std::unique_ptr<ShardedModel>> sharded =
        ShardedModel::Create(settings, *mesh_, device, {.model = model_.get(), .optimizer = {.lr = 1e-3}});
    EXPECT_TRUE(sharded.ok()) << sharded.status();
    sharded_ = *std::move(sharded);
  }
  ~Subject() { sharded_->WaitForParameters(); }

  parallel::PipelineMicroBatch Next(std::uint64_t step) {
    at::manual_seed(step);
    const models::Batch batch = {at::randint(kTokens, {3, kSeq}, at::kLong),
                                 at::randint(kTokens, {3, kSeq}, at::kLong)};
    return {sharded_->OnDevice(batch), 1 / 24.0};
  }
  double Step(std::uint64_t step) {
    const parallel::PipelineStep done = sharded_->RunMicroBatches([&](int) { return Next(step); });
    EXPECT_TRUE(sharded_->Step({.clip_norm = 1}).status.ok());
    double sum = 0;
    for (const models::LossSum& loss : done.losses) sum += loss.sum.item<double>();
    return sum;
  }
  ShardedModel& sharded() { return *sharded_; }

 private:
  std::unique_ptr<models::BlockModel> model_;
  std::optional<comm::DeviceMesh> mesh_;
  std::unique_ptr<ShardedModel> sharded_;
};

// Counts calls of an operator while it lives.
class CallsOf {
 public:
  explicit CallsOf(const std::string& name) {
    name_ = name;
    calls_ = 0;
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback(Count).scopes({at::RecordScope::FUNCTION}));
  }
  ~CallsOf() { at::removeCallback(handle_); }
  int count() const { return calls_; }

 private:
  static std::unique_ptr<at::ObserverContext> Count(const at::RecordFunction& function) {
    calls_ += name_ == function.name() ? 1 : 0;
    return nullptr;
  }
  static inline std::string name_;
  static inline std::atomic<int> calls_ = 0;
  at::CallbackHandle handle_ = 0;
};

class SolvedBlocks : public testing::TestWithParam<bool> {};

// The same operations but for the order of sums: sharded_model_test.cc.
TEST_P(SolvedBlocks, AreTakenTogetherOnADevice) {
  for (const std::string strategy : {"ddp", "fsdp"}) {
    Subject host(GetParam(), at::kCPU, Solving(strategy));
    Subject device(GetParam(), device::testing::HostDevice(), Solving(strategy));
    for (std::uint64_t step = 0; step < 3; ++step) {
      const double expected = host.Step(step);
      const CallsOf products(GetParam() ? "aten::bmm" : "aten::baddbmm");
      EXPECT_NEAR(device.Step(step), expected, 1e-10 * expected) << strategy << ", step " << step;
      EXPECT_GT(products.count(), 0) << strategy << ", step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SolvedBlocks, testing::Bool(),
                         [](const auto& model) { return model.param ? "Llama" : "Gpt"; });

// Two clock reads for each call of a step, in the second step only.
TEST(StepWork, WaitsForADeviceInTheSecondStep) {
  device::testing::DeviceTraffic& traffic = device::testing::TrafficOfHostDevice();
  Subject subject(/*llama=*/false, device::testing::HostDevice(), Solving("ddp"));
  StepWork measured(subject.sharded());
  mgrit::WorkTimes second;
  for (std::uint64_t step = 0; step < 4; ++step) {
    const mgrit::WorkTimes before = subject.sharded().solver()->work_times();
    measured.Begin();
    traffic.Reset();
    subject.Step(step);
    EXPECT_EQ(traffic.synchronized > 0, step == 1);
    measured.End();
    EXPECT_EQ(measured.counts(), step > 1);
    if (step == 1) second = subject.sharded().solver()->work_times().Since(before);
  }
  EXPECT_GT(second.evaluations(), 0);
  EXPECT_EQ(measured.work().counts.values, second.counts.values);
}

TEST(StepWork, CountsAllStepsBehindTheFirstOnTheHost) {
  Subject subject(/*llama=*/false, at::kCPU, Solving("ddp"));
  StepWork measured(subject.sharded());
  std::int64_t first = 0;
  for (std::uint64_t step = 0; step < 3; ++step) {
    measured.Begin();
    subject.Step(step);
    measured.End();
    EXPECT_EQ(measured.counts(), step > 0);
    if (step == 0) first = subject.sharded().solver()->work_times().evaluations();
  }
  EXPECT_EQ(measured.work().evaluations(), 2 * first);
}

// Trials and the times that the choice is made from are the device's: each pass of each trial ends in a wait.
TEST(AutoSolver, WaitsForTheDevice) {
  device::testing::DeviceTraffic& traffic = device::testing::TrafficOfHostDevice();
  LayerParallelTestSettings settings = Solving("ddp");
  settings.lp.chooses = true;
  Subject subject(/*llama=*/false, device::testing::HostDevice(), settings);
  SolverControl control(settings.lp, comm::testing::World(), 1);
  control.Begin(subject.sharded());
  std::string line;
  for (std::int64_t step = 0; step < 200 && line.empty(); ++step) {
    traffic.Reset();
    control.RunMicroBatches(step, [&](int) { return subject.Next(static_cast<std::uint64_t>(step)); });
    EXPECT_GE(traffic.synchronized, 4) << step;
    EXPECT_TRUE(subject.sharded().Step({.clip_norm = 1}).status.ok());
    line = control.Line();
  }
  EXPECT_NE(line.find("--lp-auto chose"), std::string::npos) << line;
}

}  // namespace
}  // namespace plait::training
