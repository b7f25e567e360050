#include "data/images/fake_images.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plait::data {
namespace {

constexpr FakeImageOptions kSmall = {
    .train_samples = 300, .test_samples = 20, .side = 12, .classes = 3, .seed = 4};

TEST(FakeImages, AreFunctionsOfSeedAndIndex) {
  const ImageSets a = FakeImages(kSmall), b = FakeImages(kSmall);
  FakeImageOptions other_seed = kSmall;
  other_seed.seed = 5;
  const ImageSets c = FakeImages(other_seed);
  EXPECT_EQ(a.train->Read(7)->pixels, b.train->Read(7)->pixels);
  EXPECT_EQ(a.train->label(7), b.train->label(7));
  EXPECT_NE(a.train->Read(7)->pixels, a.train->Read(8)->pixels);
  EXPECT_NE(a.train->Read(7)->pixels, a.test->Read(7)->pixels);
  EXPECT_NE(a.train->Read(7)->pixels, c.train->Read(7)->pixels);
  EXPECT_EQ(a.description(), "synthetic stand-in: fields of noise, seed 4");
}

// A million of them take no memory, and the last is as quickly there as the first.
TEST(FakeImages, AreMadeWhenTheyAreRead) {
  const ImageSets sets = FakeImages({});
  EXPECT_EQ(sets.train->samples(), 1'000'000);
  const absl::StatusOr<Image> last = sets.train->Read(999'999);
  ASSERT_TRUE(last.ok());
  EXPECT_EQ(last->pixels.size(), 224u * 224 * 3);
  EXPECT_LT(sets.train->label(999'999), 1000);
}

// The nearest mean of a class, taken over the training images, is the right one for every test image: noise of
// deviation 37 on a field of 3 x 3 pixels leaves 12, classes are 127 / sqrt(6) = 52 apart in each of 48.
TEST(FakeImages, AreLearnable) {
  const ImageSets sets = FakeImages(kSmall);
  std::vector<std::vector<double>> means(3, std::vector<double>(12 * 12 * 3));
  std::vector<int> count(3);
  for (std::int64_t i = 0; i < sets.train->samples(); ++i) {
    const Image image = *sets.train->Read(i);
    const std::int64_t label = sets.train->label(i);
    ++count[label];
    for (std::size_t at = 0; at < image.pixels.size(); ++at) means[label][at] += image.pixels[at];
  }
  for (std::int64_t i = 0; i < sets.test->samples(); ++i) {
    const Image image = *sets.test->Read(i);
    std::int64_t nearest = -1;
    double least = INFINITY;
    for (std::int64_t k = 0; k < 3; ++k) {
      ASSERT_GT(count[k], 50);
      double distance = 0;
      for (std::size_t at = 0; at < image.pixels.size(); ++at) {
        distance += std::pow(image.pixels[at] - means[k][at] / count[k], 2);
      }
      if (distance < least) {
        least = distance;
        nearest = k;
      }
    }
    EXPECT_EQ(nearest, sets.test->label(i)) << i;
  }
}

}  // namespace
}  // namespace plait::data
