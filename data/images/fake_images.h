// Synthetic images of any number and size, for benchmarks and tests: generated on Read, nothing is kept in memory.
#ifndef PLAIT_DATA_IMAGES_FAKE_IMAGES_H_
#define PLAIT_DATA_IMAGES_FAKE_IMAGES_H_

#include <cstdint>

#include "data/images/image_source.h"

namespace plait::data {

struct FakeImageOptions {
  std::int64_t train_samples = 1'000'000, test_samples = 1000;
  std::int64_t side = 224;  // rows and columns
  std::int64_t channels = 3;
  std::int64_t classes = 1000;
  std::uint64_t seed = 1;
};

// Each class has its own brightness in each of 4 x 4 fields and each channel, plus noise: learnable, but no
// benchmark of accuracy. Image and label are functions of seed, split and index. `synthetic` is set.
ImageSets FakeImages(const FakeImageOptions& options);

}  // namespace plait::data

#endif  // PLAIT_DATA_IMAGES_FAKE_IMAGES_H_
