#include "data/idx/image_set.h"

#include <array>
#include <cmath>

#include "base/check.h"

namespace plait::data {

std::string ImageSet::description() const { return synthetic ? "synthetic stand-in: " + source : source; }

PixelScale ScaleOf(const ImageSplit& split) {
  PLAIT_CHECK(!split.images.empty()) << "no images";
  // Whole numbers: exact for up to 2^47 pixels.
  std::uint64_t sum = 0, squares = 0;
  for (const std::uint64_t pixel : split.images) {
    sum += pixel;
    squares += pixel * pixel;
  }
  const double count = static_cast<double>(split.images.size());
  const double mean = sum / count;
  const double variance = squares / count - mean * mean;
  return {mean / 255, variance > 0 ? std::sqrt(variance) / 255 : 1.0};
}

void GatherImages(const ImageSplit& split, absl::Span<const std::int64_t> indices, const PixelScale& scale,
                  absl::Span<float> x, absl::Span<std::int64_t> y) {
  const std::size_t pixels = split.pixels();
  PLAIT_CHECK(x.size() == indices.size() * pixels)
      << x.size() << " floats for " << indices.size() << " images";
  PLAIT_CHECK(y.size() == indices.size()) << y.size() << " labels for " << indices.size() << " images";
  std::array<float, 256> value;
  for (int grey = 0; grey < 256; ++grey) {
    value[grey] = static_cast<float>((grey / 255.0 - scale.mean) / scale.standard_deviation);
  }
  for (std::size_t i = 0; i < indices.size(); ++i) {
    PLAIT_CHECK(indices[i] >= 0 && indices[i] < split.samples()) << indices[i] << " of " << split.samples();
    const std::uint8_t* image = split.images.data() + indices[i] * pixels;
    for (std::size_t k = 0; k < pixels; ++k) x[i * pixels + k] = value[image[k]];
    y[i] = split.labels[indices[i]];
  }
}

}  // namespace plait::data
