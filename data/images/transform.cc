#include "data/images/transform.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "data/images/resize.h"

namespace plait::data {
namespace {

// Channel c of a crop: black where there is no image.
std::vector<std::uint8_t> PlaneOf(const Image& image, const Crop& crop, std::int64_t c) {
  std::vector<std::uint8_t> plane(crop.rows * crop.columns, 0);
  for (std::int64_t i = 0; i < crop.rows; ++i) {
    const std::int64_t row = crop.row + i;
    if (row < 0 || row >= image.rows) continue;
    for (std::int64_t j = 0; j < crop.columns; ++j) {
      const std::int64_t column = crop.column + (crop.mirrored ? crop.columns - 1 - j : j);
      if (column < 0 || column >= image.columns) continue;
      plane[i * crop.columns + j] = image.pixels[(row * image.columns + column) * image.channels + c];
    }
  }
  return plane;
}

std::int64_t Draw(base::RandomStream& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random.Below(static_cast<std::uint64_t>(high - low + 1)));
}

// As torchvision's RandomResizedCrop, except that after ten failed tries it takes the centre square.
Crop DrawResizedCrop(const Image& image, base::RandomStream& random) {
  constexpr double kLeastArea = 0.08;
  const double widest = std::log(4.0 / 3.0), area = static_cast<double>(image.rows * image.columns);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * (kLeastArea + (1 - kLeastArea) * random.Uniform());
    const double ratio = std::exp(widest * (2 * random.Uniform() - 1));
    const std::int64_t columns = std::llround(std::sqrt(target * ratio));
    const std::int64_t rows = std::llround(std::sqrt(target / ratio));
    if (rows < 1 || columns < 1 || rows > image.rows || columns > image.columns) continue;
    const std::int64_t row = Draw(random, 0, image.rows - rows);
    return {row, Draw(random, 0, image.columns - columns), rows, columns};
  }
  return CentreCrop(image, {});
}

}  // namespace

absl::StatusOr<Augmentation> ParseAugmentation(absl::string_view name) {
  if (name == "none") return Augmentation::kNone;
  if (name == "pad-crop") return Augmentation::kPadCrop;
  if (name == "resized-crop") return Augmentation::kResizedCrop;
  return absl::InvalidArgumentError(absl::StrCat("\"", name, "\": expected none, pad-crop or resized-crop"));
}

Crop CentreCrop(const Image& image, const Centre& centre) {
  const std::int64_t shorter = std::min(image.rows, image.columns);
  const auto part = [&](std::int64_t side) {
    return std::max<std::int64_t>(1, std::llround(static_cast<double>(side) * centre.fraction));
  };
  const std::int64_t rows = part(centre.squeezes ? image.rows : shorter);
  const std::int64_t columns = part(centre.squeezes ? image.columns : shorter);
  return {(image.rows - rows) / 2, (image.columns - columns) / 2, rows, columns};
}

Crop DrawCrop(Augmentation augmentation, const Image& image, const Centre& centre,
              base::RandomStream& random) {
  if (augmentation == Augmentation::kNone) return CentreCrop(image, centre);
  Crop crop;
  if (augmentation == Augmentation::kResizedCrop) {
    crop = DrawResizedCrop(image, random);
  } else {
    crop = CentreCrop(image, centre);
    const std::int64_t most_rows = crop.rows / 8, most_columns = crop.columns / 8;
    crop.row += Draw(random, -most_rows, most_rows);
    crop.column += Draw(random, -most_columns, most_columns);
  }
  crop.mirrored = random.Below(2) == 1;
  return crop;
}

ImageTransform::ImageTransform(TransformOptions options) : options_(std::move(options)) {
  const ChannelScale& scale = options_.scale;
  for (std::size_t c = 0; c < scale.mean.size(); ++c) {
    for (int pixel = 0; pixel < 256; ++pixel) {
      values_.push_back(static_cast<float>((pixel / 255.0 - scale.mean[c]) / scale.deviation[c]));
    }
  }
}

void ImageTransform::Apply(const Image& image, std::int64_t epoch, std::int64_t index,
                           absl::Span<float> x) const {
  const std::uint64_t of_epoch =
      base::DeriveSeed(options_.seed, "augmentation", static_cast<std::uint64_t>(epoch));
  base::RandomStream random(base::DeriveSeed(of_epoch, "sample", static_cast<std::uint64_t>(index)));
  const Crop crop = options_.size == 0 ? Crop{0, 0, image.rows, image.columns}
                                       : DrawCrop(options_.augmentation, image, options_.centre, random);
  Resample(image, crop, x);
}

void ImageTransform::Resample(const Image& image, const Crop& crop, absl::Span<float> x) const {
  const std::int64_t rows = rows_of(crop), columns = columns_of(crop), channels = image.channels;
  PLAIT_CHECK(channels == static_cast<std::int64_t>(options_.scale.mean.size()))
      << "an image of " << channels << " channels for a scale of " << options_.scale.mean.size();
  PLAIT_CHECK(static_cast<std::int64_t>(x.size()) == channels * rows * columns) << x.size() << " numbers";
  for (std::int64_t c = 0; c < channels; ++c) {
    const absl::Span<float> to = x.subspan(c * rows * columns, rows * columns);
    const std::vector<std::uint8_t> plane = PlaneOf(image, crop, c);
    if (crop.rows == rows && crop.columns == columns) {
      for (std::size_t at = 0; at < plane.size(); ++at) to[at] = values_[256 * c + plane[at]];
      continue;
    }
    const std::vector<double> resized =
        ResizedPlane(plane, crop.rows, crop.columns, options_.size, options_.size);
    for (std::size_t at = 0; at < resized.size(); ++at) {
      to[at] = static_cast<float>((resized[at] / 255 - options_.scale.mean[c]) / options_.scale.deviation[c]);
    }
  }
}

}  // namespace plait::data
