#include "data/idx/image_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace plait::data {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

ImageSplit TwoImages() { return {1, 2, {0, 255, 51, 102}, {3, 9}}; }

TEST(GatherImages, ScalesPixelsOfTheNamedSamples) {
  std::array<float, 6> x;
  std::array<std::int64_t, 3> y;
  GatherImages(TwoImages(), {1, 0, 1}, {}, absl::MakeSpan(x), absl::MakeSpan(y));
  // 51 / 255 and 102 / 255, rounded once.
  EXPECT_THAT(x, ElementsAre(0.2f, 0.4f, 0.0f, 1.0f, 0.2f, 0.4f));
  EXPECT_THAT(y, ElementsAre(9, 3, 9));
  GatherImages(TwoImages(), {0, 1, 1}, {.mean = 0.5, .standard_deviation = 0.25}, absl::MakeSpan(x),
               absl::MakeSpan(y));
  // Two roundings in double and one to float, of numbers up to 2.
  EXPECT_NEAR(x[0], -2.0, 2 * 0x1p-24);
  EXPECT_NEAR(x[1], 2.0, 2 * 0x1p-24);
  EXPECT_NEAR(x[2], -1.2, 2 * 0x1p-24);
}

TEST(ScaleOf, IsMeanAndPopulationDeviation) {
  const PixelScale scale = ScaleOf(TwoImages());
  // 0, 1, 0.2 and 0.4: mean 0.4, squares 0.16 + 0.36 + 0.04 + 0 over four. Some ten roundings of numbers
  // below 1, the variance's error divided by twice the deviation (0.37).
  EXPECT_NEAR(scale.mean, 0.4, 8 * 0x1p-53);
  EXPECT_NEAR(scale.standard_deviation, std::sqrt(0.56 / 4), 16 * 0x1p-53);
  EXPECT_EQ(ScaleOf({1, 2, {7, 7}, {0}}).standard_deviation, 1.0);
}

TEST(ImageSet, SaysThatItIsSynthetic) {
  ImageSet set;
  set.source = "somewhere";
  EXPECT_EQ(set.description(), "somewhere");
  set.synthetic = true;
  EXPECT_THAT(set.description(), StartsWith("synthetic"));
}

TEST(GatherImagesDeathTest, RefusesWhatDoesNotFit) {
  std::array<float, 2> x;
  std::array<std::int64_t, 1> y;
  EXPECT_DEATH(GatherImages(TwoImages(), {2}, {}, absl::MakeSpan(x), absl::MakeSpan(y)), "2 of 2");
  EXPECT_DEATH(GatherImages(TwoImages(), {0, 1}, {}, absl::MakeSpan(x), absl::MakeSpan(y)), "2 floats for 2");
}

}  // namespace
}  // namespace plait::data
