#include "data/idx/image_set.h"

#include <cmath>

#include "base/check.h"

namespace plait::data {

std::string ImageSet::description() const { return synthetic ? "synthetic stand-in: " + source : source; }

PixelScale ScaleOf(const ImageSplit& split) {
  PLAIT_CHECK(!split.images.empty()) << "no images";
  // Integer sums: exact for up to 2^47 pixels.
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

}  // namespace plait::data
