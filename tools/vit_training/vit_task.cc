#include "tools/vit_training/vit_task.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "tools/vit_training/model_files.h"

namespace plait::vit_training {
namespace {

using rank_history::RankStatistics;

data::TransformOptions TransformOf(const VitSettings& settings, const vit::Preprocessor& preprocessor,
                                   data::Augmentation augmentation) {
  return {.size = settings.image_size,
          .augmentation = augmentation,
          .centre = {.fraction = preprocessor.centre_fraction, .squeezes = preprocessor.squeezes},
          .seed = settings.seed,
          .scale = {.mean = preprocessor.mean, .deviation = preprocessor.deviation}};
}

training::TrainedModel TrainedOf(const VitSettings& settings, const vit::VitOptions& options,
                                 models::BlockModel* model) {
  return {.model = model,
          .optimizer = settings.optimizer.Options(),
          .clip_norm = settings.optimizer.grad_clip,
          .evaluation_samples = settings.evaluate || settings.eval_only ? settings.test_batch_size : 0,
          .attention_heads = options.heads,
          .tokens_of_sample = options.tokens()};
}

}  // namespace

training::MakeDryRunModel DryRunModelOf(const VitSettings& settings, const vit::VitOptions& o) {
  return [&settings, o](std::int64_t samples) -> absl::StatusOr<training::DryRunModel> {
    const at::TensorOptions meta = at::device(at::kMeta);
    const auto model = std::make_shared<vit::Vit>(o, meta.dtype(settings.master_type()));
    return training::DryRunModel{.model = model,
                                 .trained = TrainedOf(settings, o, model.get()),
                                 .batch = {at::empty({samples, o.channels, o.image_size, o.image_size},
                                                     meta.dtype(settings.compute_type())),
                                           at::empty({samples}, meta.dtype(at::kLong))}};
  };
}

VitTask::VitTask(const VitSettings& settings, const training::Run& run, const data::ImageSets& images,
                 const vit::VitOptions& options, const std::optional<vit::HuggingFaceVit>& files,
                 const vit::Preprocessor& preprocessor, const std::vector<std::string>& class_names)
    : settings_(settings),
      run_(run),
      images_(images),
      files_(files),
      preprocessor_(preprocessor),
      class_names_(class_names),
      model_(options, at::TensorOptions(at::kMeta).dtype(settings.master_type())),
      train_(images.train, TransformOf(settings, preprocessor, *data::ParseAugmentation(settings.augment)),
             settings.compute_type()),
      test_(images.test, TransformOf(settings, preprocessor, data::Augmentation::kNone),
            settings.compute_type()),
      schedule_(settings.optimizer.Schedule()),
      sampler_({.samples = images.train->samples(),
                .batch_size = settings.GlobalBatch(run.data.size()),
                .seed = settings.seed},
               settings.gradient_accumulation_steps, settings.leaves()) {}

training::TrainedModel VitTask::model() {
  training::TrainedModel trained = TrainedOf(settings_, model_.options(), &model_);
  if (files_.has_value() && !run_.checkpoint.has_value()) {
    trained.initialize = [this](std::size_t unit) {
      return base::Prefixed(files_->ReadUnit(model_, unit), "--init-from");
    };
  }
  return trained;
}

training::MakeDryRunModel VitTask::dry_run_model() {
  return [make = DryRunModelOf(settings_, model_.options()),
          tests = images_.test->samples()](std::int64_t samples) -> absl::StatusOr<training::DryRunModel> {
    PLAIT_ASSIGN_OR_RETURN(training::DryRunModel made, make(samples));
    made.trained.evaluation_samples = std::min(made.trained.evaluation_samples, tests);
    return made;
  };
}

training::NamedValues VitTask::facts() const {
  return {{"classes", absl::StrCat(model_.options().classes)},
          {"channels", absl::StrCat(model_.options().channels)},
          {kClassNames, absl::StrJoin(images_.class_names, "\n")},
          {"training_samples", absl::StrCat(train_.samples())},
          {"training_targets_crc32", image_training::LabelsDigest(*images_.train)}};
}

training::NamedValues VitTask::shared_facts() const {
  training::NamedValues facts = image_training::TestFacts(images_);
  facts["preprocessor"] = vit::PreprocessorText(preprocessor_, settings_.image_size);
  return facts;
}

bool VitTask::done() const {
  const bool enough_steps = settings_.max_iters > 0 && step_ >= settings_.max_iters;
  return enough_steps || (settings_.epochs > 0 && sampler_.epoch() >= settings_.epochs);
}

training::TaskProgress VitTask::progress() const {
  const bool epochs_end_first =
      settings_.epochs > 0 && settings_.epochs * sampler_.steps_per_epoch() < settings_.max_iters;
  if (settings_.max_iters > 0 && !epochs_end_first) {
    return {absl::StrCat("step ", step_ + 1, " of ", settings_.max_iters), step_, settings_.max_iters};
  }
  return {absl::StrCat("epoch ", sampler_.epoch() + 1, " of ", settings_.epochs), sampler_.run_position(),
          settings_.epochs * sampler_.samples()};
}

std::string VitTask::Position() const { return absl::StrCat(sampler_.Position(), ", step ", step_); }

training::MicroBatch VitTask::Next(int k) {
  const std::vector<std::int64_t> mine = sampler_.Next(k, run_.data.rank(), run_.data.size());
  training::MicroBatch micro = {.batch = train_.Make(mine, sampler_.epoch()),
                                .nominal_count = sampler_.step_samples()};
  micro.batch.random.first_sample = sampler_.first_sample();
  return micro;
}

absl::Status VitTask::CheckData() { return run_.world.Agree(base::Prefixed(train_.status(), "--data")); }

bool VitTask::EvaluationIsDue() const { return sampler_.at_epoch_end() || step_ + 1 == settings_.max_iters; }

absl::Status VitTask::EndStep(const training::StepReport& report, bool evaluates) {
  step_ = report.step;
  const std::int64_t iteration = step_ - 1;
  const double images_per_second = static_cast<double>(sampler_.step_samples()) / report.slowest_seconds;
  if (step_ % settings_.log_interval == 0 || evaluates) {
    run_.log.Info(absl::StrFormat("iter=%d loss=%.6f dt=%.6f dtf=%.6f dtb=%.6f sps=%.6f", iteration,
                                  report.loss, report.dt_seconds, report.forward_seconds,
                                  report.backward_seconds, images_per_second));
  }
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  image_training::TestResult test = {.loss = kNone, .accuracy = kNone};
  absl::Status tested;
  if (evaluates && settings_.evaluate) {
    absl::StatusOr<image_training::TestResult> result = Test();
    tested = result.status();
    if (tested.ok()) test = *result;
  }
  if (sampler_.at_epoch_end()) sampler_.NextEpoch();
  PLAIT_RETURN_IF_ERROR(trainer_->Record({{"iter", static_cast<double>(iteration)},
                                          {"loss", report.loss},
                                          {"dt", report.dt_seconds},
                                          {"dtf", report.forward_seconds},
                                          {"dtb", report.backward_seconds},
                                          {"sps", images_per_second},
                                          {"lr", report.learning_rate},
                                          {"gradient_norm", report.gradient_norm},
                                          {"test_loss", test.loss},
                                          {"test_acc", test.accuracy}}));
  return tested.ok() ? tested : trainer_->SaveBefore(tested);
}

absl::StatusOr<image_training::TestResult> VitTask::Test() {
  PLAIT_ASSIGN_OR_RETURN(const image_training::TestResult test,
                         image_training::TestImages(*trainer_, run_, test_, settings_.test_batch_size));
  const std::string iter = step_ > 0 ? absl::StrCat("iter=", step_ - 1, " ") : "";
  run_.log.Info(absl::StrFormat("%stest_loss=%.6f test_acc=%.6f", iter, test.loss, test.accuracy));
  return test;
}

void VitTask::Save(parallel::CheckpointState& state) const {
  sampler_.Save(state);
  state.texts[kModelClassNames] = absl::StrJoin(class_names_, "\n");
  state.texts[kPreprocessorText] = vit::PreprocessorText(preprocessor_, settings_.image_size);
}

absl::Status VitTask::Restore(const parallel::Checkpoint& checkpoint) {
  step_ = checkpoint.step();
  return sampler_.Restore(checkpoint);
}

std::vector<training::Recorded> VitTask::metrics() const {
  return {{data::Count("iter", "step, from 0")},
          {{"loss", "1", "cross entropy of the whole batch"}},
          {{"dt", "s", "time per step"}, RankStatistics::kEachRank},
          {{"dtf", "s", "forward passes and losses"}, RankStatistics::kEachRank},
          {{"dtb", "s", "backward passes, reductions and optimizer"}, RankStatistics::kEachRank},
          {{"sps", "1/s", "samples per second of all ranks"}},
          {{"lr", "1", "learning rate"}},
          {{"gradient_norm", "1", "2-norm of all gradients, before clipping"}},
          {{"test_loss", "1", "mean over all test images, after the step"}},
          {{"test_acc", "%", "test images that are classified correctly, after the step"}}};
}

training::HistoryPlots VitTask::plots() const {
  return {.x = "iter",
          .skips_nan = true,
          .plots = {{"loss"}, {"dt"}, {"dtf"}, {"dtb"}, {"sps"}, {"test_loss"}, {"test_acc"}}};
}

}  // namespace plait::vit_training
