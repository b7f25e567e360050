#include "data/images/resize.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace plait::data {
namespace {

// What an output pixel is made of along one direction: input pixels [first, first + weights.size()).
struct Taps {
  std::int64_t first = 0;
  std::vector<double> weights;
};

// `size` outputs from `extent` inputs.
std::vector<Taps> TapsOf(std::int64_t extent, std::int64_t size) {
  const double scale = static_cast<double>(extent) / static_cast<double>(size);
  const double support = std::max(scale, 1.0);
  std::vector<Taps> taps(size);
  for (std::int64_t i = 0; i < size; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const auto first =
        std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(centre - support + 0.5)));
    const auto last = std::min(extent, static_cast<std::int64_t>(std::floor(centre + support + 0.5)));
    double sum = 0;
    for (std::int64_t j = first; j < last; ++j) {
      const double weight = std::max(0.0, 1 - std::abs((static_cast<double>(j) + 0.5 - centre) / support));
      taps[i].weights.push_back(weight);
      sum += weight;
    }
    for (double& weight : taps[i].weights) weight /= sum;
    taps[i].first = first;
  }
  return taps;
}

// One line: inputs `step` apart, outputs `to_step` apart.
void Along(const std::vector<Taps>& taps, const double* from, std::int64_t step, double* to,
           std::int64_t to_step) {
  for (std::size_t i = 0; i < taps.size(); ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < taps[i].weights.size(); ++k) {
      sum += taps[i].weights[k] * from[(taps[i].first + static_cast<std::int64_t>(k)) * step];
    }
    to[static_cast<std::int64_t>(i) * to_step] = sum;
  }
}

// torchvision rounds a half to the even neighbour.
std::int64_t MarginOf(std::int64_t extent, std::int64_t size) {
  return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(extent - size) / 2));
}

std::vector<std::uint8_t> ChannelOf(const Image& image, std::int64_t c) {
  std::vector<std::uint8_t> plane(image.rows * image.columns);
  for (std::size_t at = 0; at < plane.size(); ++at) plane[at] = image.pixels[at * image.channels + c];
  return plane;
}

}  // namespace

std::vector<double> ResizedPlane(const std::vector<std::uint8_t>& plane, std::int64_t rows,
                                 std::int64_t columns, std::int64_t to_rows, std::int64_t to_columns) {
  const std::vector<double> wide(plane.begin(), plane.end());
  std::vector<double> narrow(rows * to_columns), resized(to_rows * to_columns);
  const std::vector<Taps> across = TapsOf(columns, to_columns), down = TapsOf(rows, to_rows);
  for (std::int64_t i = 0; i < rows; ++i) Along(across, &wide[i * columns], 1, &narrow[i * to_columns], 1);
  for (std::int64_t j = 0; j < to_columns; ++j) Along(down, &narrow[j], to_columns, &resized[j], to_columns);
  return resized;
}

Image MiddleSquare(const Image& image, std::int64_t size) {
  PLAIT_CHECK(size > 0 && image.rows > 0 && image.columns > 0)
      << image.rows << " x " << image.columns << " pixels to " << size;
  const std::int64_t shorter = std::min(image.rows, image.columns);
  const std::int64_t rows = image.rows * size / shorter, columns = image.columns * size / shorter;
  const std::int64_t top = MarginOf(rows, size), left = MarginOf(columns, size);
  Image square = {size, size, image.channels, std::vector<std::uint8_t>(size * size * image.channels)};
  if (shorter == size) {
    for (std::int64_t i = 0; i < size; ++i) {
      std::copy_n(image.pixels.begin() + ((top + i) * columns + left) * image.channels, size * image.channels,
                  square.pixels.begin() + i * size * image.channels);
    }
    return square;
  }
  for (std::int64_t c = 0; c < image.channels; ++c) {
    const std::vector<double> plane =
        ResizedPlane(ChannelOf(image, c), image.rows, image.columns, rows, columns);
    for (std::int64_t i = 0; i < size; ++i) {
      for (std::int64_t j = 0; j < size; ++j) {
        square.pixels[(i * size + j) * image.channels + c] =
            static_cast<std::uint8_t>(std::nearbyint(plane[(top + i) * columns + left + j]));
      }
    }
  }
  return square;
}

}  // namespace plait::data
