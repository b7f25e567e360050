#include "tools/cnn_training/images.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "data/idx/open_images.h"

namespace plait::cnn_training {
namespace {

// Two convolutions of 3 x 3 and a pool of 2 x 2.
constexpr std::int64_t kSmallestSide = 6;

double FourDigits(double value) { return std::round(value * 1e4) / 1e4; }

void Shorten(data::ImageSplit& split, std::int64_t samples) {
  if (samples == 0 || split.samples() <= samples) return;
  split.labels.resize(samples);
  split.images.resize(samples * split.pixels());
}

absl::StatusOr<Images> Read(const CnnSettings& settings) {
  PLAIT_ASSIGN_OR_RETURN(data::ImageSet set, data::OpenImages({.data_dir = base::FromUser(settings.data)}));
  if (set.train.samples() == 0 || set.test.samples() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(set.description(), ": ", set.train.samples(),
                                                   " training and ", set.test.samples(),
                                                   " test images; expected some of both"));
  }
  Images images = {.set = std::move(set), .scale = {}};
  const data::PixelScale scale = data::ScaleOf(images.set.train);
  images.scale = {FourDigits(scale.mean), std::max(FourDigits(scale.standard_deviation), 1e-4)};
  Shorten(images.set.train, settings.max_samples);
  Shorten(images.set.test, settings.max_samples);
  return images;
}

}  // namespace

absl::StatusOr<Images> OpenImages(const CnnSettings& settings, const comm::Communicator& world) {
  absl::StatusOr<Images> images = Read(settings);
  const absl::Status mine =
      settings.data.empty() ? images.status() : base::Prefixed(images.status(), "--data");
  PLAIT_RETURN_IF_ERROR(world.Agree(mine));
  const data::ImageSplit& train = images->set.train;
  if (std::min(train.rows, train.columns) >= kSmallestSide) return images;
  return absl::InvalidArgumentError(
      absl::StrCat("images of ", train.rows, " x ", train.columns, ": expected at least 6 x 6"));
}

std::string DataLine(const Images& images) {
  const data::ImageSet& set = images.set;
  return absl::StrFormat(
      "Data: %s: %d training and %d test images of %d x %d, %d classes; pixels - %.4f, divided by %.4f",
      set.description(), set.train.samples(), set.test.samples(), set.train.rows, set.train.columns,
      set.class_names.size(), images.scale.mean, images.scale.standard_deviation);
}

models::Batch MakeBatch(const data::ImageSplit& split, const data::PixelScale& scale,
                        absl::Span<const std::int64_t> indices, at::ScalarType type) {
  const auto samples = static_cast<std::int64_t>(indices.size());
  models::Batch batch = {.inputs = at::empty({samples, 1, split.rows, split.columns}, at::kFloat),
                         .targets = at::empty({samples}, at::kLong)};
  data::GatherImages(split, indices, scale,
                     absl::MakeSpan(batch.inputs.mutable_data_ptr<float>(), batch.inputs.numel()),
                     absl::MakeSpan(batch.targets.mutable_data_ptr<std::int64_t>(), samples));
  batch.inputs = batch.inputs.to(type);
  return batch;
}

}  // namespace plait::cnn_training
