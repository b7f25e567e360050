#include "tools/cnn_training/cnn_task.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "tools/cnn_training/activation_bytes.h"

namespace plait::cnn_training {
namespace {

cnn::CnnOptions OptionsOf(const CnnSettings& settings, const data::ImageSets& sets) {
  return {.rows = sets.rows,
          .columns = sets.columns,
          .classes = static_cast<std::int64_t>(sets.class_names.size()),
          .dropout1 = settings.dropout1,
          .dropout2 = settings.dropout2};
}

double SecondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

CnnTask::CnnTask(const CnnSettings& settings, const training::Run& run, const data::ImageSets& images)
    : settings_(settings),
      run_(run),
      images_(images),
      train_(images.train, {.size = 0, .scale = images.scale}, settings.compute_type()),
      test_(images.test, {.size = 0, .scale = images.scale}, settings.compute_type()),
      model_(OptionsOf(settings, images), at::TensorOptions(settings.master_type()).device(at::kMeta)),
      schedule_(parallel::LrSchedule::StepLr({.lr = settings.lr, .step_size = 1, .gamma = settings.gamma})),
      sampler_({.samples = images.train->samples(),
                .batch_size = settings.GlobalBatch(run.data.size()),
                .seed = settings.seed},
               settings.gradient_accumulation_steps, settings.leaves()) {}

training::TrainedModel CnnTask::model() {
  const cnn::CnnOptions options = OptionsOf(settings_, images_);
  const at::ScalarType type = settings_.compute_type();
  // Biases decay too, as in torch.optim.AdamW without groups.
  return {.model = &model_,
          .optimizer = {.lr = settings_.lr, .weight_decay = settings_.weight_decay},
          .decays_all = true,
          .activation_bytes_per_sample = ActivationBytes(options, type),
          .evaluation_bytes = settings_.test_batch_size * EvaluationBytes(options, type)};
}

training::NamedValues CnnTask::facts() const {
  return {{"image", absl::StrCat(images_.rows, " x ", images_.columns)},
          {"classes", absl::StrCat(images_.class_names.size())},
          {"training_samples", absl::StrCat(train_.samples())},
          {"training_targets_crc32", image_training::LabelsDigest(*images_.train)}};
}

training::NamedValues CnnTask::shared_facts() const { return image_training::TestFacts(images_); }

training::TaskProgress CnnTask::progress() const {
  return {absl::StrCat("epoch ", sampler_.epoch() + 1, " of ", settings_.epochs), sampler_.run_position(),
          settings_.epochs * sampler_.samples()};
}

std::string CnnTask::Position() const { return absl::StrCat(sampler_.Position(), ", step ", step_); }

training::MicroBatch CnnTask::Next(int k) {
  const std::vector<std::int64_t> mine = sampler_.Next(k, run_.data.rank(), run_.data.size());
  training::MicroBatch micro = {.batch = train_.Make(mine), .nominal_count = sampler_.step_samples()};
  micro.batch.random.first_sample = sampler_.first_sample();
  return micro;
}

absl::Status CnnTask::EndStep(const training::StepReport& report, bool evaluates) {
  step_ = report.step;
  loss_sum_ += report.loss * static_cast<double>(report.count);
  seconds_ += report.dt_seconds;
  run_seconds_ += report.dt_seconds;
  return evaluates ? EndEpoch() : absl::OkStatus();
}

absl::Status CnnTask::EvaluateOnly() {
  PLAIT_ASSIGN_OR_RETURN(const image_training::TestResult test,
                         image_training::TestImages(*trainer_, run_, test_, settings_.test_batch_size));
  run_.log.Info(
      absl::StrFormat("epoch=%d test_loss=%f test_acc=%f", sampler_.epoch(), test.loss, test.accuracy));
  return absl::OkStatus();
}

absl::Status CnnTask::EndEpoch() {
  const double begin = SecondsNow();
  PLAIT_ASSIGN_OR_RETURN(const image_training::TestResult test,
                         image_training::TestImages(*trainer_, run_, test_, settings_.test_batch_size));
  const double train_loss = loss_sum_ / static_cast<double>(sampler_.samples());
  run_.log.Info(absl::StrFormat("epoch=%d dt=%f train_loss=%f test_loss=%f test_acc=%f", sampler_.epoch() + 1,
                                seconds_, train_loss, test.loss, test.accuracy));
  PLAIT_RETURN_IF_ERROR(trainer_->Record({{"epoch", static_cast<double>(sampler_.epoch() + 1)},
                                          {"dt", seconds_},
                                          {"train_loss", train_loss},
                                          {"test_loss", test.loss},
                                          {"test_acc", test.accuracy},
                                          {"lr", LearningRate()}}));
  loss_sum_ = seconds_ = 0;
  ++epochs_done_;
  run_seconds_ += SecondsNow() - begin;
  sampler_.NextEpoch();
  return absl::OkStatus();
}

void CnnTask::Save(parallel::CheckpointState& state) const {
  sampler_.Save(state);
  state.texts["epoch.seconds"] = absl::StrFormat("%a", seconds_);
  state.texts["epoch.loss_sum"] = absl::StrFormat("%a", loss_sum_);
}

absl::Status CnnTask::Restore(const parallel::Checkpoint& checkpoint) {
  PLAIT_RETURN_IF_ERROR(sampler_.Restore(checkpoint));
  PLAIT_ASSIGN_OR_RETURN(seconds_, checkpoint.Number("epoch.seconds"));
  PLAIT_ASSIGN_OR_RETURN(loss_sum_, checkpoint.Number("epoch.loss_sum"));
  step_ = checkpoint.step();
  return absl::OkStatus();
}

std::vector<training::Recorded> CnnTask::metrics() const {
  return {{data::Count("epoch", "epoch, from 1")},
          {{"dt", "s", "training in the epoch, by rank"}, rank_history::RankStatistics::kEachRank},
          {{"train_loss", "1", "mean over the epoch's samples, each at its step"}},
          {{"test_loss", "1", "mean over all test samples"}},
          {{"test_acc", "%", "test samples that are classified correctly"}},
          {{"lr", "1", "learning rate in the epoch"}}};
}

training::HistoryPlots CnnTask::plots() const {
  return {.x = "epoch",
          .title = "",
          .robust = false,
          .plots = {{"dt"}, {"train_loss"}, {"test_loss"}, {"test_acc"}}};
}

}  // namespace plait::cnn_training
