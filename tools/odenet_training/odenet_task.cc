#include "tools/odenet_training/odenet_task.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "tools/image_training/image_batches.h"

namespace plait::odenet_training {
namespace {

odenet::OdeNetOptions OptionsOf(const OdeNetSettings& s, const Problem& problem, const Level& level) {
  return s.Network(problem.sample, problem.classes, level.layers);
}

constexpr char kPoints[] = "story.points";

// As the history has them, and checkpoints.
std::vector<data::Scalar> ScalarsOf(const Point& point) {
  return {{"level", static_cast<double>(point.level)},
          {"layers", static_cast<double>(point.layers)},
          {"epoch", static_cast<double>(point.epoch)},
          {"step", static_cast<double>(point.step)},
          {"work_units", point.work_units},
          {"dt", point.seconds},
          {"train_loss", point.train_loss},
          {"val_loss", point.val_loss},
          {"val_acc", point.val_acc},
          {"lr", point.lr}};
}

std::string KeyOf(std::size_t point, absl::string_view name) {
  return absl::StrCat("story.", point, ".", name);
}

absl::StatusOr<Point> PointIn(const parallel::Checkpoint& checkpoint, std::size_t number) {
  const auto read = [&](absl::string_view name) { return checkpoint.Number(KeyOf(number, name)); };
  Point point;
  PLAIT_ASSIGN_OR_RETURN(const double level, read("level"));
  PLAIT_ASSIGN_OR_RETURN(const double layers, read("layers"));
  PLAIT_ASSIGN_OR_RETURN(const double epoch, read("epoch"));
  // Checkpoints of earlier versions have none; their histories have this.
  const double step = read("step").value_or(static_cast<double>(checkpoint.step()));
  point.level = static_cast<int>(level);
  point.layers = static_cast<std::int64_t>(layers);
  point.epoch = static_cast<std::int64_t>(epoch);
  point.step = static_cast<std::int64_t>(step);
  PLAIT_ASSIGN_OR_RETURN(point.work_units, read("work_units"));
  PLAIT_ASSIGN_OR_RETURN(point.seconds, read("dt"));
  PLAIT_ASSIGN_OR_RETURN(point.train_loss, read("train_loss"));
  PLAIT_ASSIGN_OR_RETURN(point.val_loss, read("val_loss"));
  PLAIT_ASSIGN_OR_RETURN(point.val_acc, read("val_acc"));
  PLAIT_ASSIGN_OR_RETURN(point.lr, read("lr"));
  return point;
}

void SaveStory(const std::vector<Point>& story, parallel::CheckpointState& state) {
  state.integers[kPoints] = static_cast<std::int64_t>(story.size());
  for (std::size_t i = 0; i < story.size(); ++i) {
    for (const data::Scalar& scalar : ScalarsOf(story[i])) {
      state.texts[KeyOf(i, scalar.name)] = absl::StrFormat("%a", scalar.value);
    }
  }
}

// Checkpoints of earlier versions have none.
absl::StatusOr<std::vector<Point>> StoryIn(const parallel::Checkpoint& checkpoint) {
  std::vector<Point> story;
  if (checkpoint.integers().count(kPoints) == 0) return story;
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t points, checkpoint.Integer(kPoints));
  for (std::int64_t i = 0; i < points; ++i) {
    PLAIT_ASSIGN_OR_RETURN(const Point point, PointIn(checkpoint, static_cast<std::size_t>(i)));
    story.push_back(point);
  }
  return story;
}

}  // namespace

Regularisation RegularisationOf(const OdeNetSettings& settings, const odenet::OdeNetOptions& options) {
  const bool per_layer = options.time_weights == odenet::TimeWeights::kPerLayer;
  return {.weight_decay = settings.tikhonov * options.spacing(),
          .time_tikhonov = per_layer ? settings.tikhonov_time / options.spacing() : 0};
}

OdeNetTask::OdeNetTask(const OdeNetSettings& settings, const training::Run& run, const Problem& problem,
                       const Level& level)
    : settings_(settings),
      run_(run),
      problem_(problem),
      level_(level),
      model_(OptionsOf(settings, problem, level), at::TensorOptions(at::kMeta).dtype(settings.master_type())),
      schedule_(parallel::LrSchedule::StepLr({.lr = settings.lr, .step_size = 1, .gamma = settings.gamma})),
      sampler_({.samples = problem.train.count,
                .batch_size = settings.GlobalBatch(run.data.size()),
                .seed = settings.seed},
               settings.gradient_accumulation_steps, settings.leaves()),
      story_(level.earlier),
      step_(level.first_step),
      work_units_(level.earlier.empty() ? 0 : level.earlier.back().work_units) {}

training::TrainedModel OdeNetTask::TrainedOf(odenet::OdeNet* model) const {
  const Regularisation added = RegularisationOf(settings_, model->options());
  return {.model = model,
          .optimizer = {.kind = parallel::OptimizerKind::kAdam,
                        .lr = settings_.lr,
                        .weight_decay = added.weight_decay},
          .time_tikhonov = added.time_tikhonov,
          .evaluation_samples = std::min(settings_.test_batch_size, problem_.validation.count)};
}

training::TrainedModel OdeNetTask::model() {
  training::TrainedModel trained = TrainedOf(&model_);
  if (level_.initial.empty()) return trained;
  trained.initialize = [this](std::size_t unit) {
    model_.ResetParameters(unit);  // for the buffers
    const std::vector<models::ParameterUnit> units = model_.units();
    for (const models::ParameterSpec& spec : units[unit].parameters) {
      if (spec.role == models::ParameterRole::kBuffer) continue;
      spec.tensor.detach().copy_(level_.initial.at(spec.name));
    }
    return absl::OkStatus();
  };
  return trained;
}

training::MakeDryRunModel OdeNetTask::dry_run_model() {
  if (!level_.prints && !settings_.has_memory_limit()) return {};
  return [this](std::int64_t samples) -> absl::StatusOr<training::DryRunModel> {
    const at::TensorOptions meta = at::device(at::kMeta);
    const odenet::OdeNetOptions options = OptionsOf(settings_, problem_, level_);
    const auto model = std::make_shared<odenet::OdeNet>(options, meta.dtype(settings_.master_type()));
    std::vector<std::int64_t> shape = {samples};
    if (options.form == odenet::Form::kConv2d) shape.push_back(1);
    shape.insert(shape.end(), options.sample.begin(), options.sample.end());
    return training::DryRunModel{.model = model,
                                 .trained = TrainedOf(model.get()),
                                 .batch = {at::empty(shape, meta.dtype(settings_.compute_type())),
                                           at::empty({samples}, meta.dtype(at::kLong))}};
  };
}

training::NamedValues OdeNetTask::facts() const {
  return {{"classes", absl::StrCat(problem_.classes)},
          {"training_samples", absl::StrCat(problem_.train.count)},
          {"training_targets_crc32", problem_.labels_digest}};
}

training::NamedValues OdeNetTask::shared_facts() const {
  return {{"validation_samples", absl::StrCat(problem_.validation.count)},
          {"validation_targets_crc32", problem_.validation_labels_digest}};
}

// A sample takes a level's number of layers.
training::TaskProgress OdeNetTask::progress() const {
  const std::vector<std::int64_t> layers = settings_.Levels();
  std::int64_t coarser = 0, all = 0;
  for (std::size_t number = 0; number < layers.size(); ++number) {
    const auto i = static_cast<int>(number);
    const std::int64_t work = layers[number] * settings_.EpochsOf(i);
    all += work;
    coarser += i > level_.number ? work : 0;
  }
  const std::string level = settings_.nested ? absl::StrCat("level ", level_.number, ", ") : "";
  return {absl::StrCat(level, "epoch ", sampler_.epoch() + 1, " of ", level_.epochs),
          coarser * sampler_.samples() + level_.layers * sampler_.run_position(), all * sampler_.samples()};
}

std::string OdeNetTask::Position() const {
  const std::string level = settings_.nested ? absl::StrCat("on level ", level_.number, ", ") : "";
  return absl::StrCat(level, sampler_.Position(), ", step ", step_);
}

training::MicroBatch OdeNetTask::Next(int k) {
  const std::vector<std::int64_t> mine = sampler_.Next(k, run_.data.rank(), run_.data.size());
  training::MicroBatch micro = {.batch = problem_.train.make(mine), .nominal_count = sampler_.step_samples()};
  micro.batch.random.first_sample = sampler_.first_sample();
  return micro;
}

absl::Status OdeNetTask::BeforeFirstStep() {
  for (const Point& point : level_.earlier) PLAIT_RETURN_IF_ERROR(Record(point));
  return absl::OkStatus();
}

bool OdeNetTask::EvaluationIsDue() const {
  const std::int64_t epochs = sampler_.epoch() + 1;
  return sampler_.at_epoch_end() && (epochs % settings_.eval_interval == 0 || epochs == level_.epochs);
}

absl::Status OdeNetTask::EndStep(const training::StepReport& report, bool evaluates) {
  step_ = report.step;
  work_units_ += static_cast<double>(level_.layers) / static_cast<double>(settings_.layers);
  loss_sum_ += report.loss * static_cast<double>(report.count);
  samples_ += report.count;
  seconds_ += report.dt_seconds;
  if (evaluates) PLAIT_RETURN_IF_ERROR(Evaluate());
  if (sampler_.at_epoch_end()) sampler_.NextEpoch();
  return absl::OkStatus();
}

absl::StatusOr<image_training::TestResult> OdeNetTask::Validate() {
  const absl::StatusOr<image_training::TestResult> test = image_training::TestClassifier(
      *trainer_, run_, problem_.validation.count, settings_.test_batch_size, problem_.validation.make);
  PLAIT_RETURN_IF_ERROR(run_.world.Agree(problem_.validation.status()));
  return test;
}

absl::Status OdeNetTask::EvaluateOnly() {
  PLAIT_ASSIGN_OR_RETURN(const image_training::TestResult test, Validate());
  run_.log.Info(absl::StrFormat("level=%d layers=%d epoch=%d val_loss=%.6f val_acc=%.2f", level_.number,
                                level_.layers, sampler_.epoch(), test.loss, test.accuracy));
  return absl::OkStatus();
}

absl::Status OdeNetTask::Evaluate() {
  PLAIT_ASSIGN_OR_RETURN(const image_training::TestResult test, Validate());
  const Point point = {.level = level_.number,
                       .layers = level_.layers,
                       .epoch = sampler_.epoch() + 1,
                       .step = step_,
                       .work_units = work_units_,
                       .seconds = seconds_,
                       .train_loss = loss_sum_ / static_cast<double>(samples_),
                       .val_loss = test.loss,
                       .val_acc = test.accuracy,
                       .lr = LearningRate()};
  if (level_.prints) {
    run_.log.Info(absl::StrFormat(
        "level=%d layers=%d epoch=%d work_units=%.2f dt=%.3f train_loss=%.6f val_loss=%.6f val_acc=%.2f",
        point.level, point.layers, point.epoch, point.work_units, point.seconds, point.train_loss,
        point.val_loss, point.val_acc));
  }
  story_.push_back(point);
  loss_sum_ = seconds_ = 0;
  samples_ = 0;
  return Record(point);
}

absl::Status OdeNetTask::Record(const Point& point) { return trainer_->Record(ScalarsOf(point)); }

void OdeNetTask::Save(parallel::CheckpointState& state) const {
  sampler_.Save(state);
  state.integers[kLevel] = level_.number;
  SaveStory(story_, state);
  state.integers["since_validation.samples"] = samples_;
  state.texts["since_validation.seconds"] = absl::StrFormat("%a", seconds_);
  state.texts["since_validation.loss_sum"] = absl::StrFormat("%a", loss_sum_);
  state.texts["work_units"] = absl::StrFormat("%a", work_units_);
}

absl::Status OdeNetTask::Restore(const parallel::Checkpoint& checkpoint) {
  PLAIT_RETURN_IF_ERROR(sampler_.Restore(checkpoint));
  PLAIT_ASSIGN_OR_RETURN(story_, StoryIn(checkpoint));
  PLAIT_ASSIGN_OR_RETURN(samples_, checkpoint.Integer("since_validation.samples"));
  PLAIT_ASSIGN_OR_RETURN(seconds_, checkpoint.Number("since_validation.seconds"));
  PLAIT_ASSIGN_OR_RETURN(loss_sum_, checkpoint.Number("since_validation.loss_sum"));
  PLAIT_ASSIGN_OR_RETURN(work_units_, checkpoint.Number("work_units"));
  step_ = checkpoint.step();
  return absl::OkStatus();
}

std::vector<training::Recorded> OdeNetTask::metrics() const {
  return {
      {data::Count("level", "of the nested iteration; 0: the finest")},
      {data::Count("layers", "of the network")},
      {data::Count("epoch", "of the level, from 1")},
      {{"work_units", "1",
        "gradient steps of the finest network; a coarse one counts its share of the layers"}},
      {{"dt", "s", "training since the last validation, by rank"}, rank_history::RankStatistics::kEachRank},
      {{"train_loss", "1", "mean over the samples since the last validation, each at its step"}},
      {{"val_loss", "1", "mean over all validation samples"}},
      {{"val_acc", "%", "validation samples that are classified correctly"}},
      {{"lr", "1", "learning rate in the epoch"}}};
}

training::HistoryPlots OdeNetTask::plots() const {
  return {.x = "work_units",
          .title = "",
          .robust = false,
          .plots = {{"train_loss"}, {"val_loss"}, {"val_acc"}, {"layers"}}};
}

}  // namespace plait::odenet_training
