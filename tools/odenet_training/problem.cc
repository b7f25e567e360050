#include "tools/odenet_training/problem.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "data/idx/open_images.h"
#include "data/vectors/indian_pines.h"
#include "data/vectors/peaks.h"
#include "tools/image_training/image_batches.h"
#include "tools/training/resume.h"

namespace plait::odenet_training {
namespace {

at::Tensor IndexTensor(absl::Span<const std::int64_t> indices) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(indices.size())}, at::kLong);
  std::copy(indices.begin(), indices.end(), tensor.mutable_data_ptr<std::int64_t>());
  return tensor;
}

Samples SamplesOf(const data::LabelledVectors& vectors, at::ScalarType type) {
  at::Tensor x = at::empty({vectors.samples(), vectors.width}, at::kFloat);
  std::copy(vectors.values.begin(), vectors.values.end(), x.mutable_data_ptr<float>());
  x = x.to(type);
  const at::Tensor labels = IndexTensor(vectors.labels);
  return {.count = vectors.samples(),
          .make =
              [x, labels](absl::Span<const std::int64_t> indices) {
                const at::Tensor chosen = IndexTensor(indices);
                return models::Batch{.inputs = at::index_select(x, 0, chosen),
                                     .targets = at::index_select(labels, 0, chosen)};
              },
          .status = [] { return absl::OkStatus(); }};
}

Samples SamplesOf(std::shared_ptr<const data::ImageSource> source, const data::ImageSets& sets,
                  at::ScalarType type) {
  const auto batches = std::make_shared<image_training::ImageBatches>(
      std::move(source), data::TransformOptions{.size = 0, .scale = sets.scale}, type);
  return {.count = batches->samples(),
          .make = [batches](absl::Span<const std::int64_t> indices) { return batches->Make(indices); },
          .status = [batches] { return batches->status(); }};
}

absl::StatusOr<data::VectorSets> OpenVectors(const OdeNetSettings& s) {
  if (s.problem == "peaks") {
    return data::MakePeaks(
        {.train_samples = s.samples, .validation_samples = s.validation_samples, .seed = s.seed});
  }
  if (s.data.empty()) {
    return absl::InvalidArgumentError(
        "expected a directory with Indian_pines_gt.mat, and Indian_pines_corrected.mat for the real cube");
  }
  return data::OpenIndianPines(
      {.folder = base::FromUser(s.data), .train_fraction = s.train_fraction, .seed = s.seed});
}

absl::StatusOr<data::ImageSets> OpenImages(const OdeNetSettings& s) {
  data::ImageOptions options = {.data_dir = base::FromUser(s.data)};
  if (s.problem == "mnist") options.package_dir = "";  // which is Fashion-MNIST's
  PLAIT_ASSIGN_OR_RETURN(data::ImageSet set, data::OpenImages(options));
  return data::FromGreyImages(std::move(set));
}

absl::StatusOr<Problem> ImageProblem(const OdeNetSettings& s, const comm::Communicator& world) {
  PLAIT_ASSIGN_OR_RETURN(const data::ImageSets sets,
                         image_training::AgreeOnImages(OpenImages(s), s.max_samples, "--data", world));
  return Problem{.description = image_training::DataLine(sets),
                 .sample = {sets.rows, sets.columns},
                 .classes = static_cast<std::int64_t>(sets.class_names.size()),
                 .train = SamplesOf(sets.train, sets, s.compute_type()),
                 .validation = SamplesOf(sets.test, sets, s.compute_type()),
                 .labels_digest = image_training::LabelsDigest(*sets.train),
                 .validation_labels_digest = image_training::LabelsDigest(*sets.test)};
}

}  // namespace

absl::StatusOr<Problem> OpenProblem(const OdeNetSettings& s, const comm::Communicator& world) {
  if (s.problem == "mnist" || s.problem == "fashion") return ImageProblem(s, world);
  const absl::StatusOr<data::VectorSets> sets = OpenVectors(s);
  const std::string flag = s.problem == "peaks" ? "--problem=peaks" : "--data";
  PLAIT_RETURN_IF_ERROR(world.Agree(base::Prefixed(sets.status(), flag)));
  const auto digest = [](const auto& set) {
    return training::DigestOf(set.samples(), [&set](std::int64_t i) { return set.labels[i]; });
  };
  return Problem{
      .description = absl::StrCat("Data: ", sets->description, ": ", sets->train.samples(), " training and ",
                                  sets->validation.samples(), " validation samples of ", sets->train.width,
                                  " numbers, ", sets->classes, " classes"),
      .sample = {sets->train.width},
      .classes = sets->classes,
      .train = SamplesOf(sets->train, s.compute_type()),
      .validation = SamplesOf(sets->validation, s.compute_type()),
      .labels_digest = digest(sets->train),
      .validation_labels_digest = digest(sets->validation)};
}

}  // namespace plait::odenet_training
