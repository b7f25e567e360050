#include "data/idx/image_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace plait::data {
namespace {

using ::testing::StartsWith;

ImageSplit TwoImages() { return {1, 2, {0, 255, 51, 102}, {3, 9}}; }

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

}  // namespace
}  // namespace plait::data
