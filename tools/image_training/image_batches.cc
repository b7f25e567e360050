#include "tools/image_training/image_batches.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/zeros.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "data/sampler.h"
#include "tools/training/resume.h"

namespace plait::image_training {
namespace {

std::string Numbers(const std::vector<double>& values) {
  return absl::StrJoin(values, "/",
                       [](std::string* text, double value) { absl::StrAppendFormat(text, "%.4f", value); });
}

absl::Status CheckNotEmpty(const data::ImageSets& sets) {
  if (sets.train->samples() > 0 && sets.test->samples() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(sets.description(), ": ", sets.train->samples(),
                                                 " training and ", sets.test->samples(),
                                                 " test images; expected some of both"));
}

}  // namespace

absl::StatusOr<data::ImageSets> AgreeOnImages(absl::StatusOr<data::ImageSets> opened,
                                              std::int64_t max_samples, const std::string& flag,
                                              const comm::Communicator& world) {
  absl::Status mine = opened.ok() ? CheckNotEmpty(*opened) : opened.status();
  if (!flag.empty()) mine = base::Prefixed(mine, flag);
  PLAIT_RETURN_IF_ERROR(world.Agree(mine));
  if (max_samples > 0) {
    const auto some = opened->sorted ? data::SpacedOf : data::FirstOf;
    opened->train = some(opened->train, max_samples);
    opened->test = some(opened->test, max_samples);
  }
  return opened;
}

std::string DataLine(const data::ImageSets& sets) {
  const std::string size = sets.rows > 0 ? absl::StrCat(sets.rows, " x ", sets.columns) : "any size";
  return absl::StrFormat(
      "Data: %s: %d training and %d test images of %s, %d classes; pixels - %s, divided by %s",
      sets.description(), sets.train->samples(), sets.test->samples(), size, sets.class_names.size(),
      Numbers(sets.scale.mean), Numbers(sets.scale.deviation));
}

models::Batch ImageBatches::Make(absl::Span<const std::int64_t> indices, std::int64_t epoch) {
  const std::int64_t size = transform_.options().size;
  const auto channels = static_cast<std::int64_t>(transform_.options().scale.mean.size());
  const auto samples = static_cast<std::int64_t>(indices.size());
  std::vector<std::int64_t> shape = {samples, channels, size, size};
  if (size == 0) {
    const absl::StatusOr<data::Image> first = source_->Read(0);
    if (first.ok()) shape = {samples, channels, first->rows, first->columns};
  }
  models::Batch batch = {.inputs = at::zeros(shape, at::kFloat), .targets = at::zeros({samples}, at::kLong)};
  float* const x = batch.inputs.mutable_data_ptr<float>();
  const std::int64_t numbers = shape[1] * shape[2] * shape[3];
  for (std::int64_t i = 0; i < samples; ++i) {
    const absl::StatusOr<data::Image> image = source_->Read(indices[i]);
    if (!image.ok() && status_.ok()) status_ = image.status();
    if (image.ok()) transform_.Apply(*image, epoch, indices[i], absl::MakeSpan(x + i * numbers, numbers));
    batch.targets.mutable_data_ptr<std::int64_t>()[i] = image.ok() ? source_->label(indices[i]) : -1;
  }
  batch.inputs = batch.inputs.to(type_);
  return batch;
}

std::string LabelsDigest(const data::ImageSource& source) {
  return training::DigestOf(source.samples(), [&](std::int64_t i) { return source.label(i); });
}

training::NamedValues TestFacts(const data::ImageSets& sets) {
  return {{"test_samples", absl::StrCat(sets.test->samples())},
          {"test_targets_crc32", LabelsDigest(*sets.test)}};
}

absl::StatusOr<TestResult> TestClassifier(
    training::Trainer& trainer, const training::Run& run, std::int64_t samples, std::int64_t batch_size,
    const std::function<models::Batch(absl::Span<const std::int64_t> indices)>& make) {
  // The same batches for any number of ranks, in turns.
  data::Sampler sampler({.samples = samples, .batch_size = batch_size, .shuffle = false});
  const auto next = [&] {
    std::vector<std::int64_t> mine;
    for (int rank = 0; rank < run.data.size(); ++rank) {
      const auto batch = sampler.Next();
      if (batch.has_value() && rank == run.data.rank()) mine = *batch;
    }
    return make(mine);
  };
  const std::int64_t turns = (sampler.batches_per_epoch() + run.data.size() - 1) / run.data.size();
  const std::vector<double> sums =
      trainer.Evaluate("test", turns, 2, [&](std::int64_t, training::DeviceSums& sum) {
        const models::Batch batch = next();
        const at::Tensor scores = trainer.model().Output(batch);
        if (!scores.defined() || batch.targets.numel() == 0) return;  // of another stage, or of nothing
        if (run.mesh.Has("cp") && run.mesh.axis("cp").rank() > 0) return;
        const at::Tensor targets = batch.targets.to(scores.device());
        sum.Add(0, at::cross_entropy_loss(scores.to(at::kDouble), targets, {}, at::Reduction::Sum,
                                          /*ignore_index=*/-1));
        sum.Add(1, scores.argmax(1).eq(targets).sum());
      });
  PLAIT_RETURN_IF_ERROR(trainer.CheckEvaluated("test loss", sums[0]));
  const auto count = static_cast<double>(samples);
  return TestResult{.loss = sums[0] / count, .accuracy = 100 * sums[1] / count};
}

absl::StatusOr<TestResult> TestImages(training::Trainer& trainer, const training::Run& run,
                                      ImageBatches& test, std::int64_t batch_size) {
  const absl::StatusOr<TestResult> result =
      TestClassifier(trainer, run, test.samples(), batch_size,
                     [&](absl::Span<const std::int64_t> indices) { return test.Make(indices); });
  PLAIT_RETURN_IF_ERROR(base::Prefixed(run.world.Agree(test.status()), "--data"));
  return result;
}

}  // namespace plait::image_training
