// The loop on CPU and on a device in host memory: losses and evaluations of many micro-batches with different
// counts against sums in float64, synchronizations of a step, dropout, and resuming.
#include "tools/training/trainer.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/roll.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/path.h"
#include "models/cnn/cnn.h"
#include "models/mlp/mlp.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/step_folders.h"
#include "tools/device/testing/host_device.h"

namespace plait::training {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kIn = 3, kOut = 2, kEvaluations = 7;

struct ToySettings final : Settings {
  int steps = 3;
  bool network = false;  // a convolutional network with dropout, else one linear layer that stays as it is
  bool loses_parameters = false;  // their file, before the first step or before --eval-only evaluates them
  bool evaluates_until_saved = false;
  bool by_all_ranks = true;        // evaluates until then, for fifty seconds at most; else for a second
  bool lacks_meta_kernel = false;  // of an operator of the model, which has a dry run
  bool records_seeds = false;      // of dropout
  void Bind(SettingsTable& table) override {
    table.Group("Toy");
    table.Add("steps", &steps, "steps");
    BindBatch(table, "samples");
    BindParallel(table);
    BindFiles(table, "steps");
  }
  absl::Status Check(const std::vector<comm::MeshAxis>& axes) const override { return CheckShared(axes); }
};

// Samples of a micro-batch: 0 to 5, some in the first one.
models::Batch BatchOf(bool network, std::int64_t step, int k) {
  at::manual_seed(static_cast<std::uint64_t>(1000 * step + k));
  const std::int64_t samples = (step + 4 * k + 1) % 6;
  if (network) {
    return {at::randn({samples + 1, 1, 8, 8}, at::kDouble), at::randint(10, {samples + 1}, at::kLong)};
  }
  return {at::randn({samples, kIn}, at::kDouble), at::randn({samples, kOut}, at::kDouble)};
}

struct Recording {
  std::vector<double> weight, bias, losses;
  std::vector<std::int64_t> counts;
  std::vector<double> evaluated;
  std::vector<std::int64_t> waits;  // for the device, by step
  // Steps of complete checkpoints when the evaluation begins and ends.
  std::vector<std::int64_t> saved_before, saved;
  std::vector<std::uint64_t> seeds;  // of each micro-batch
};

// Files of offloaded state, which have no name: found through /proc.
void CutOffloadedFiles() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string file = std::filesystem::read_symlink(entry.path(), error).string();
    if (!absl::StrContains(file, "plait-state-")) continue;
    std::filesystem::resize_file(entry.path(), 0);
  }
}

class ToyTask final : public TrainingTask {
 public:
  ToyTask(ToySettings& settings, Recording& recording) : settings_(settings), recording_(recording) {
    const at::TensorOptions options = at::TensorOptions(at::kDouble).device(at::kMeta);
    if (settings.network) {
      model_ = std::make_unique<cnn::Cnn>(cnn::CnnOptions{.rows = 8, .columns = 8}, options);
    } else {
      model_ = std::make_unique<mlp::Mlp>(mlp::MlpOptions{.widths = {kIn, kOut}}, options);
    }
  }
  void set_trainer(Trainer& trainer) { trainer_ = &trainer; }

  TrainedModel model() override { return Trained(*model_); }
  MakeDryRunModel dry_run_model() override {
    if (!settings_.lacks_meta_kernel) return {};
    return [this](std::int64_t samples) -> absl::StatusOr<DryRunModel> {
      const at::TensorOptions options = at::TensorOptions(at::kDouble).device(at::kMeta);
      DryRunModel made = {
          .model = std::make_shared<mlp::Mlp>(mlp::MlpOptions{.widths = {kIn, kOut}}, options),
          .trained = {},
          .batch = {at::empty({samples, kIn}, options), at::empty({samples, kOut}, options)}};
      made.trained = Trained(*made.model);
      return made;
    };
  }
  bool done() const override { return step_ >= settings_.steps; }
  TaskProgress progress() const override { return {"toy", step_, settings_.steps}; }
  std::string Position() const override { return absl::StrCat("after step ", step_); }
  double LearningRate() const override { return settings_.network ? 1e-3 : 0; }
  MicroBatch Next(int k) override {
    if (k == 0) device::testing::TrafficOfHostDevice().Reset();
    return {.batch = BatchOf(settings_.network, step_, k), .nominal_count = 1000};
  }
  bool EvaluationIsDue() const override { return step_ + 1 == settings_.steps; }
  absl::Status EndStep(const StepReport& report, bool evaluates) override {
    step_ = report.step;
    recording_.losses.push_back(report.loss);
    recording_.counts.push_back(report.count);
    recording_.waits.push_back(device::testing::TrafficOfHostDevice().to_host);
    if (!evaluates) return absl::OkStatus();
    if (settings_.evaluates_until_saved) EvaluateUntilSaved();
    device::testing::TrafficOfHostDevice().Reset();
    recording_.evaluated =
        trainer_->Evaluate("test", kEvaluations, 2, [&](std::int64_t batch, DeviceSums& sums) {
          const models::LossSum loss =
              trainer_->model().Loss(BatchOf(settings_.network, 50, static_cast<int>(batch)));
          sums.Add(0, loss.sum);
          sums.Add(1, loss.count);
        });
    recording_.waits.push_back(device::testing::TrafficOfHostDevice().to_host);
    return absl::OkStatus();
  }
  absl::Status BeforeFirstStep() override {
    if (settings_.loses_parameters) CutOffloadedFiles();
    return absl::OkStatus();
  }
  absl::Status EvaluateOnly() override {
    if (settings_.loses_parameters) CutOffloadedFiles();
    trainer_->Evaluate("test", 1, 1, [&](std::int64_t batch, DeviceSums& sums) {
      sums.Add(0, trainer_->model().Loss(BatchOf(settings_.network, 50, static_cast<int>(batch))).sum);
    });
    return absl::OkStatus();
  }
  void Save(parallel::CheckpointState&) const override {}
  absl::Status Restore(const parallel::Checkpoint& checkpoint) override {
    step_ = checkpoint.step();
    return absl::OkStatus();
  }
  std::vector<Recorded> metrics() const override { return {}; }
  bool always_writes_outputs() const override { return false; }

 private:
  void EvaluateUntilSaved() {
    recording_.saved_before = *parallel::CompleteSteps(settings_.checkpoint_dir);
    const auto one = [&](std::int64_t, DeviceSums&) {
      recording_.saved = *parallel::CompleteSteps(settings_.checkpoint_dir);
      if (recording_.saved.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    };
    trainer_->Evaluate("test", settings_.by_all_ranks ? 1000 : 20, 1, one, settings_.by_all_ranks);
  }

  TrainedModel Trained(models::BlockModel& model) const {
    TrainedModel trained = {.model = &model, .optimizer = {.weight_decay = 0}};
    if (settings_.records_seeds) {
      trained.run_block = [this, &model](std::size_t block, const models::BlockState& input,
                                         const models::BlockContext& context) {
        if (block == 0) recording_.seeds.push_back(context.random.seed);
        return model.blocks()[block]->Forward(input, context);
      };
    }
    if (!settings_.lacks_meta_kernel) return trained;
    trained.run_block = [&model](std::size_t block, const models::BlockState& input,
                                 const models::BlockContext& context) {
      const models::BlockState output = model.blocks()[block]->Forward(input, context);
      return models::BlockState{at::roll(output.hidden, {0}, {1})};  // LibTorch has it in Python only
    };
    return trained;
  }

  ToySettings& settings_;
  Recording& recording_;
  std::unique_ptr<models::BlockModel> model_;
  Trainer* trainer_ = nullptr;
  std::int64_t step_ = 0;
};

// The exit code.
int RunToy(at::Device device, std::vector<std::string> flags, ToySettings& settings, Recording& recording) {
  flags.insert(flags.begin(), {"toy", "--nproc=1", "--no-plots", "--dtype=float64", "--device=cpu"});
  std::vector<char*> argv;
  for (std::string& flag : flags) argv.push_back(flag.data());
  argv.push_back(nullptr);
  const auto run = [&](Run& run) -> absl::Status {
    run.device = device;
    ToyTask task(settings, recording);
    Trainer trainer(run, task);
    task.set_trainer(trainer);
    const absl::Status prepared = trainer.Prepare();
    if (!prepared.ok()) return prepared;
    for (const auto& [name, value] : trainer.model().WholeParameters()) {
      const double* const numbers = value.const_data_ptr<double>();
      (name == "layers.0.weight" ? recording.weight : recording.bias)
          .assign(numbers, numbers + value.numel());
    }
    return trainer.Train();
  };
  return RunProgram(static_cast<int>(flags.size()), argv.data(),
                    {.name = "toy", .summary = "", .settings = settings, .run = run});
}

Recording Train(at::Device device, const std::vector<std::string>& flags, bool network = false) {
  ToySettings settings;
  settings.network = network;
  Recording recording;
  EXPECT_EQ(RunToy(device, flags, settings, recording), 0);
  return recording;
}

// The sum of squares of a batch, in plain doubles.
double SumOf(const models::Batch& batch, const Recording& r) {
  const double* x = batch.inputs.const_data_ptr<double>();
  const double* target = batch.targets.const_data_ptr<double>();
  double sum = 0;
  for (std::int64_t i = 0; i < batch.inputs.size(0); ++i) {
    for (std::int64_t o = 0; o < kOut; ++o) {
      double y = r.bias[o];
      for (std::int64_t c = 0; c < kIn; ++c) y += r.weight[o * kIn + c] * x[i * kIn + c];
      sum += (y - target[i * kOut + o]) * (y - target[i * kOut + o]);
    }
  }
  return sum;
}

class TrainerTest : public testing::TestWithParam<bool> {
 protected:
  at::Device device() const { return GetParam() ? device::testing::HostDevice() : at::Device(at::kCPU); }
};
INSTANTIATE_TEST_SUITE_P(CpuAndDevice, TrainerTest, testing::Bool());

TEST_P(TrainerTest, LossIsTheMeanOverAllMicroBatches) {
  constexpr int kMicroBatches = 40;
  const Recording r = Train(device(), {absl::StrCat("--gradient-accumulation-steps=", kMicroBatches)});
  ASSERT_EQ(r.losses.size(), 3u);
  // Each square is a few roundings of numbers of size 10 at most, and the sums have terms of one sign.
  const auto near = [](double sum, std::int64_t terms) {
    return (static_cast<double>(terms) + 32) * 0x1p-53 * std::max(sum, 1.0);
  };
  for (std::int64_t step = 0; step < 3; ++step) {
    double sum = 0;
    std::int64_t count = 0;
    for (int k = 0; k < kMicroBatches; ++k) {
      const models::Batch batch = BatchOf(false, step, k);
      sum += SumOf(batch, r);
      count += batch.inputs.size(0);
    }
    EXPECT_EQ(r.counts[step], count);
    EXPECT_NEAR(r.losses[step], sum / static_cast<double>(count),
                near(sum, 2 * count) / static_cast<double>(count));
  }
  double sum = 0, count = 0;
  for (int batch = 0; batch < kEvaluations; ++batch) {
    sum += SumOf(BatchOf(false, 50, batch), r);
    count += static_cast<double>(BatchOf(false, 50, batch).inputs.size(0));
  }
  EXPECT_NEAR(r.evaluated[0], sum, near(sum, 2 * static_cast<std::int64_t>(count)));
  EXPECT_EQ(r.evaluated[1], count);
}

TEST(Trainer, WaitsForTheDeviceOnceForTheLossAndOnceForTheNorm) {
  for (const int micro_batches : {1, 9}) {
    for (const bool network : {false, true}) {
      const Recording r = Train(device::testing::HostDevice(),
                                {absl::StrCat("--gradient-accumulation-steps=", micro_batches)}, network);
      // Three steps and an evaluation, with one read.
      EXPECT_EQ(r.waits, (std::vector<std::int64_t>{2, 2, 2, 1})) << micro_batches << network;
    }
  }
}

TEST(Trainer, DropoutOfADeviceIsThatOfTheHost) {
  const Recording host = Train(at::kCPU, {"--gradient-accumulation-steps=2"}, true);
  const Recording device = Train(device::testing::HostDevice(), {"--gradient-accumulation-steps=2"}, true);
  ASSERT_EQ(host.losses.size(), device.losses.size());
  for (std::size_t step = 0; step < host.losses.size(); ++step) {
    EXPECT_NEAR(device.losses[step], host.losses[step], 1e-10 * host.losses[step]);
  }
  EXPECT_NEAR(device.evaluated[0], host.evaluated[0], 1e-10 * host.evaluated[0]);
}

TEST(Trainer, EachMicroBatchHasItsOwnDropout) {
  ToySettings settings;
  settings.records_seeds = true;
  Recording recording;
  EXPECT_EQ(RunToy(at::kCPU, {"--gradient-accumulation-steps=4"}, settings, recording), 0);
  // Three steps, and the evaluation, which drops nothing.
  const std::set<std::uint64_t> seeds(recording.seeds.begin(), recording.seeds.begin() + 12);
  EXPECT_EQ(seeds.size(), 12u);
}

TEST_P(TrainerTest, AResumedRunGoesOn) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/trainer_test", GetParam());
  base::RemoveTree(folder);
  const Recording whole = Train(device(), {"--steps=4"}, true);
  Train(device(), {"--steps=2", "--checkpoint-dir=" + folder}, true);
  const Recording rest = Train(device(), {"--steps=4", "--checkpoint-dir=" + folder, "--resume=auto"}, true);
  base::RemoveTree(folder);
  ASSERT_EQ(rest.losses.size(), 2u);
  EXPECT_EQ(rest.losses[0], whole.losses[2]);
  EXPECT_EQ(rest.losses[1], whole.losses[3]);
}

TEST(Trainer, KeepsTheSettingsThatAResumedRunHas) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/trainer_test_settings");
  base::RemoveTree(folder);
  Train(at::kCPU, {"--steps=2", "--seed=7", "--checkpoint-dir=" + folder});
  Train(at::kCPU, {"--steps=3", "--checkpoint-dir=" + folder, "--resume=auto"});
  const absl::StatusOr<std::string> newest = parallel::FindLatestCheckpoint(folder);
  ASSERT_TRUE(newest.ok()) << newest.status();
  EXPECT_THAT(*parallel::Checkpoint::Open(*newest)->Text("settings"), HasSubstr(", seed=7, "));
  base::RemoveTree(folder);
}

// A job that dies while it evaluates has the checkpoint before.
TEST(Trainer, ASaveIsCompletedDuringAnEvaluation) {
  const std::string folder = testing::TempDir() + "/trainer_test_saved";
  base::RemoveTree(folder);
  ToySettings settings;
  settings.evaluates_until_saved = true;
  Recording recording;
  EXPECT_EQ(RunToy(at::kCPU, {"--steps=2", "--checkpoint-interval=1", "--checkpoint-dir=" + folder}, settings,
                   recording),
            0);
  EXPECT_EQ(recording.saved, (std::vector<std::int64_t>{1}));
  base::RemoveTree(folder);
}

// To do so is collective over all ranks.
TEST(Trainer, LeavesASaveAloneWhereSomeRanksEvaluate) {
  const std::string folder = testing::TempDir() + "/trainer_test_some";
  base::RemoveTree(folder);
  ToySettings settings;
  settings.evaluates_until_saved = true;
  settings.by_all_ranks = false;
  Recording recording;
  EXPECT_EQ(RunToy(at::kCPU, {"--steps=2", "--checkpoint-interval=1", "--checkpoint-dir=" + folder}, settings,
                   recording),
            0);
  EXPECT_EQ(recording.saved,
            recording.saved_before);  // empty, but where the save was done before the evaluation
  EXPECT_THAT(*parallel::CompleteSteps(folder), ::testing::Contains(2));
  base::RemoveTree(folder);
}

struct Ended {
  int code = 0;
  std::string out, err;
};
Ended Captured(const std::vector<std::string>& flags, ToySettings& settings, Recording& recording) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Ended ended;
  ended.code = RunToy(at::kCPU, flags, settings, recording);
  ended.out = testing::internal::GetCapturedStdout();
  ended.err = testing::internal::GetCapturedStderr();
  return ended;
}

// Parameters that could not be read are NaN: what was evaluated is no result, and a smaller learning rate no help.
TEST(Trainer, ParametersThatCannotBeReadAreAnError) {
  const std::string folder = testing::TempDir() + "/trainer_test_lost";
  Train(at::kCPU, {"--checkpoint-dir=" + folder});
  for (const bool evaluates : {false, true}) {
    std::vector<std::string> flags = {"--strategy=fsdp", "--offload=" + testing::TempDir(),
                                      "--offload-params"};
    if (evaluates) flags.insert(flags.end(), {"--eval-only", "--resume=" + folder});
    for (const bool lost : {false, true}) {
      ToySettings settings;
      settings.loses_parameters = lost;
      Recording recording;
      const Ended ended = Captured(flags, settings, recording);
      EXPECT_EQ(ended.code, lost ? 1 : 0) << ended.err;
      EXPECT_EQ(absl::StrContains(ended.err, "the file ends at byte 0"), lost) << ended.err;
      EXPECT_FALSE(absl::StrContains(ended.err, "learning rate")) << ended.err;
    }
  }
  base::RemoveTree(folder);
}

Ended WithoutMetaKernel(const std::vector<std::string>& flags, bool lacks = true) {
  ToySettings settings;
  settings.lacks_meta_kernel = lacks;
  Recording recording;
  const Ended ended = Captured(flags, settings, recording);
  EXPECT_EQ(recording.losses.size(), ended.code == 0 ? 3u : 0u);
  return ended;
}

// Nobody asked for a limit: the run goes on. Else it must not be lost in a warning.
TEST(Trainer, AnOperatorWithoutMetaKernelLeavesNoMemoryPlan) {
  constexpr char kWhy[] =
      "no dry run: aten::roll has no kernel for the meta device (parallel/plan/meta_kernels.cc registers "
      "such "
      "kernels)";
  const Ended warned = WithoutMetaKernel({});
  EXPECT_EQ(warned.code, 0);
  EXPECT_THAT(warned.out + warned.err,
              HasSubstr(absl::StrCat("no memory plan, and no check that the run fits: ", kWhy)));
  const Ended refused = WithoutMetaKernel({"--memory-limit=8G"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(refused.err, absl::StrCat("toy: --memory-limit=8G: cannot be checked: ", kWhy,
                                      "; leave it out to run without a limit\n"));
  const Ended dry = WithoutMetaKernel({"--dry-run"});
  EXPECT_EQ(dry.code, 1);
  EXPECT_EQ(dry.err, absl::StrCat("toy: ", kWhy, "\n"));
}

TEST(Trainer, AProgramWithoutMemoryPlanRefusesALimit) {
  const Ended refused = WithoutMetaKernel({"--memory-limit=8G"}, /*lacks=*/false);
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(refused.err,
            "toy: --memory-limit=8G: cannot be checked: this program has no memory plan; leave it out to run "
            "without a limit\n");
}

}  // namespace
}  // namespace plait::training
