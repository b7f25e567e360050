// Trains a residual network on y = sin(3 x_0) cos(2 x_1): docs/tutorial.md.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tensor.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "residual_net.h"
#include "tools/training/epoch_sampler.h"
#include "tools/training/program.h"
#include "tools/training/trainer.h"

namespace tutorial {
namespace {

namespace training = plait::training;
namespace parallel = plait::parallel;

// Each setting with its default, bound once to a flag.
struct Settings final : training::Settings {
  Settings() { batch_size = 32; }

  std::int64_t width = 64, depth = 4, samples = 2048;
  int epochs = 4;
  double lr = 1e-3;

  void Bind(training::SettingsTable& table) override {
    table.Group("Training");
    table.Add("width", &width, "width of the network", training::OnResume::kSame);
    table.Add("depth", &depth, "residual blocks", training::OnResume::kSame);
    table.Add("samples", &samples, "synthetic samples", training::OnResume::kSame);
    table.Add("epochs", &epochs, "number of epochs", training::OnResume::kAdopt);
    table.Add("lr", &lr, "learning rate of AdamW", training::OnResume::kAdopt);
    BindBatch(table, "samples");
    BindParallel(table);
    BindFiles(table, "steps");
  }
  absl::Status Check(const std::vector<plait::comm::MeshAxis>& axes) const override {
    PLAIT_RETURN_IF_ERROR(training::AtLeast("width", static_cast<double>(width), 1));
    PLAIT_RETURN_IF_ERROR(training::AtLeast("depth", static_cast<double>(depth), 1));
    PLAIT_RETURN_IF_ERROR(training::AtLeast("samples", static_cast<double>(samples), 1));
    if (sequence_parallel) return absl::InvalidArgumentError("--sequence-parallel: samples are no sequences");
    return CheckShared(axes);
  }
  std::vector<std::string> mesh_axes() const override { return {"pp", "tp"}; }
};

class SineTask final : public training::TrainingTask {
 public:
  // Both outlive the task. Every rank draws all samples: the same, from the seed.
  SineTask(const Settings& settings, const training::Run& run)
      : settings_(settings),
        run_(run),
        model_(2, settings.width, settings.depth,
               at::TensorOptions(settings.master_type()).device(at::kMeta)),
        sampler_({.samples = settings.samples,
                  .batch_size = settings.GlobalBatch(run.data.size()),
                  .seed = settings.seed},
                 settings.gradient_accumulation_steps) {
    at::manual_seed(settings.seed);
    inputs_ = at::rand({settings.samples, 2}, at::kFloat).to(settings.compute_type());
    targets_ = at::sin(3 * inputs_.narrow(1, 0, 1)) * at::cos(2 * inputs_.narrow(1, 1, 1));
  }

  training::TrainedModel model() override { return {.model = &model_, .optimizer = {.lr = settings_.lr}}; }
  bool done() const override { return sampler_.epoch() >= settings_.epochs; }
  training::TaskProgress progress() const override {
    return {absl::StrCat("epoch ", sampler_.epoch() + 1), sampler_.run_position(),
            settings_.epochs * settings_.samples};
  }
  std::string Position() const override { return sampler_.Position(); }
  double LearningRate() const override { return settings_.lr; }

  training::MicroBatch Next(int k) override {
    const std::vector<std::int64_t> mine = sampler_.Next(k, run_.data.rank(), run_.data.size());
    const at::Tensor rows = at::tensor(mine);
    return {.batch = {.inputs = inputs_.index_select(0, rows), .targets = targets_.index_select(0, rows)},
            .nominal_count = sampler_.step_samples()};
  }

  bool EvaluationIsDue() const override { return sampler_.at_epoch_end(); }
  absl::Status EndStep(const training::StepReport& report, bool evaluates) override {
    if (evaluates) {
      run_.log.Info(absl::StrFormat("epoch=%d loss=%.6f", sampler_.epoch() + 1, report.loss));
      sampler_.NextEpoch();
    }
    return trainer_->Record({{"loss", report.loss}, {"dt", report.dt_seconds}});
  }
  std::vector<training::Recorded> metrics() const override {
    return {{{"loss", "1", "mean squared error of the step"}}, {{"dt", "s", "of the step"}}};
  }

  void Save(parallel::CheckpointState& state) const override { sampler_.Save(state); }
  absl::Status Restore(const parallel::Checkpoint& checkpoint) override {
    return sampler_.Restore(checkpoint);
  }

 private:
  const Settings& settings_;
  const training::Run& run_;
  ResidualNet model_;
  training::EpochSampler sampler_;
  at::Tensor inputs_, targets_;
};

absl::Status Train(const Settings& settings, training::Run& run) {
  run.log.Info(absl::StrCat("Data: synthetic, ", settings.samples, " samples of sin(3 x_0) cos(2 x_1)"));
  SineTask task(settings, run);
  training::Trainer trainer(run, task);
  PLAIT_RETURN_IF_ERROR(trainer.Prepare());
  PLAIT_RETURN_IF_ERROR(trainer.Train());
  return trainer.Conclude();
}

}  // namespace
}  // namespace tutorial

int main(int argc, char** argv) {
  tutorial::Settings settings;
  return plait::training::RunProgram(
      argc, argv,
      {.name = "train_sine",
       .summary = "Trains a residual network on a product of sines, on any mesh.",
       .examples = {"train_sine",
                    "train_sine --nproc=4 --mesh=dp_shard=2,tp=2 --strategy=fsdp --checkpoint-dir=run"},
       .settings = settings,
       .run = [&](plait::training::Run& run) { return tutorial::Train(settings, run); }});
}
