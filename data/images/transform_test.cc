// Crops and their distributions; resizing against sums written out (tools/image_training compares with LibTorch's).
#include "data/images/transform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "data/images/testing/image_files.h"

namespace plait::data {
namespace {

const ChannelScale kScale = {{0.5, 0.25, 0}, {0.5, 2, 1}};

ImageTransform Transform(std::int64_t size, Augmentation augmentation = Augmentation::kNone,
                         std::uint64_t seed = 1) {
  return ImageTransform({.size = size, .augmentation = augmentation, .seed = seed, .scale = kScale});
}

std::vector<float> Applied(const ImageTransform& transform, const Image& image, std::int64_t epoch = 0,
                           std::int64_t index = 0) {
  std::vector<float> x(image.channels * transform.options().size * transform.options().size);
  transform.Apply(image, epoch, index, absl::MakeSpan(x));
  return x;
}

TEST(ImageTransform, NormalizesByChannel) {
  const Image image = PatternImage(4, 4);
  const std::vector<float> x = Applied(Transform(4), image);
  for (int c = 0; c < 3; ++c) {
    for (int at = 0; at < 16; ++at) {
      EXPECT_EQ(x[16 * c + at], static_cast<float>((image.pixels[3 * at + c] / 255.0 - kScale.mean[c]) /
                                                   kScale.deviation[c]));
    }
  }
}

// 4 x 6 to 2 x 2 of the middle 4 x 4: an output lies between four pixels, and its triangle of half width 2 gives
// weights 1/8, 3/8, 3/8, 1/8, of which the crop's edge cuts one: 3/7, 3/7, 1/7.
TEST(ImageTransform, AveragesWhereItShrinks) {
  const Image image = PatternImage(4, 6);
  const std::vector<float> x = Applied(Transform(2), image);
  const double weights[2][4] = {{3. / 7, 3. / 7, 1. / 7, 0}, {0, 1. / 7, 3. / 7, 3. / 7}};
  for (int c = 0; c < 3; ++c) {
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 2; ++j) {
        double sum = 0;
        for (int row = 0; row < 4; ++row) {
          for (int column = 0; column < 4; ++column) {
            sum += weights[i][row] * weights[j][column] * image.pixels[(row * 6 + column + 1) * 3 + c];
          }
        }
        EXPECT_NEAR(x[4 * c + 2 * i + j], (sum / 255 - kScale.mean[c]) / kScale.deviation[c], 1e-6);
      }
    }
  }
}

// A crop is a function of seed, epoch and index.
TEST(ImageTransform, DrawsBySeedEpochAndIndex) {
  const Image image = PatternImage(40, 50);
  for (const Augmentation kind : {Augmentation::kPadCrop, Augmentation::kResizedCrop}) {
    const ImageTransform transform = Transform(40, kind);
    const std::vector<float> x = Applied(transform, image, 3, 17);
    EXPECT_EQ(Applied(Transform(40, kind), image, 3, 17), x);
    EXPECT_NE(Applied(transform, image, 4, 17), x);
    EXPECT_NE(Applied(transform, image, 3, 18), x);
    EXPECT_NE(Applied(Transform(40, kind, 2), image, 3, 17), x);
  }
}

TEST(ImageTransform, MirrorsColumns) {
  const Image image = PatternImage(4, 4);
  std::vector<float> plain(48), mirrored(48);
  Transform(4).Resample(image, {0, 0, 4, 4, false}, absl::MakeSpan(plain));
  Transform(4).Resample(image, {0, 0, 4, 4, true}, absl::MakeSpan(mirrored));
  for (int row = 0; row < 12; ++row) {
    for (int column = 0; column < 4; ++column) {
      EXPECT_EQ(mirrored[4 * row + column], plain[4 * row + 3 - column]);
    }
  }
}

TEST(ImageTransform, IsBlackWhereThereIsNoImage) {
  const Image image = PatternImage(4, 4);
  std::vector<float> x(48);
  Transform(4).Resample(image, {-1, 2, 4, 4, false}, absl::MakeSpan(x));
  EXPECT_EQ(x[0], -1.0f);                                                          // (0 - 0.5) / 0.5
  EXPECT_EQ(x[4 + 2], -1.0f);                                                      // beyond the last column
  EXPECT_EQ(x[4], static_cast<float>((image.pixels[2 * 3] / 255.0 - 0.5) / 0.5));  // row 0, column 2
}

TEST(Crops, TheCentreIsTheMiddleSquare) {
  const Crop crop = CentreCrop(PatternImage(40, 61), {.fraction = 0.875});
  EXPECT_EQ(crop.rows, 35);
  EXPECT_EQ(crop.row, 2);
  EXPECT_EQ(crop.column, 13);
  const Crop squeezed = CentreCrop(PatternImage(40, 64), {.fraction = 0.875, .squeezes = true});
  EXPECT_EQ(squeezed.rows, 35);
  EXPECT_EQ(squeezed.columns, 56);
  EXPECT_EQ(squeezed.row, 2);
  EXPECT_EQ(squeezed.column, 4);
}

TEST(Crops, PadCropsMoveByAnEighthAndMirrorHalf) {
  const Image image = PatternImage(32, 32);
  base::RandomStream random(3);
  std::map<std::int64_t, int> rows, columns;
  int mirrored = 0;
  constexpr int kDraws = 9000;
  for (int i = 0; i < kDraws; ++i) {
    const Crop crop = DrawCrop(Augmentation::kPadCrop, image, {}, random);
    ASSERT_EQ(crop.rows, 32);
    ++rows[crop.row];
    ++columns[crop.column];
    mirrored += crop.mirrored;
  }
  for (const auto* places : {&rows, &columns}) {
    ASSERT_EQ(places->size(), 9u);  // -4 to 4
    EXPECT_EQ(places->begin()->first, -4);
    for (const auto& [place, count] : *places) EXPECT_NEAR(count, 1000, 6 * std::sqrt(1000.0)) << place;
  }
  EXPECT_NEAR(mirrored, kDraws / 2, 6 * std::sqrt(kDraws / 4.0));
}

TEST(Crops, ResizedCropsHaveTheAreasAndShapesOfTheRecipe) {
  const Image image = PatternImage(200, 300);
  base::RandomStream random(3);
  double area = 0;
  constexpr int kDraws = 4000;
  for (int i = 0; i < kDraws; ++i) {
    const Crop crop = DrawCrop(Augmentation::kResizedCrop, image, {}, random);
    ASSERT_TRUE(crop.row >= 0 && crop.row + crop.rows <= 200 && crop.column >= 0 &&
                crop.column + crop.columns <= 300);
    const double share = static_cast<double>(crop.rows * crop.columns) / (200.0 * 300);
    // Rounding of the sides, at least 48 pixels.
    ASSERT_GT(share, 0.08 * 0.97);
    const double shape = static_cast<double>(crop.columns) / static_cast<double>(crop.rows);
    ASSERT_TRUE(shape > 0.74 && shape < 1.36) << shape;
    area += share / kDraws;
  }
  // Areas a below 1/2 always fit; above, shapes of at least 1.5 a do, which is a share (ln 4/3 - ln 1.5 a) / (2 ln 4/3)
  // of all. Integrated, the mean area of what fits is 0.2315 / 0.5959; its deviation is below 0.22.
  EXPECT_NEAR(area, 0.3885, 6 * 0.22 / std::sqrt(kDraws));
}

TEST(Augmentation, HasNames) {
  EXPECT_EQ(*ParseAugmentation("pad-crop"), Augmentation::kPadCrop);
  EXPECT_EQ(*ParseAugmentation("resized-crop"), Augmentation::kResizedCrop);
  EXPECT_EQ(*ParseAugmentation("none"), Augmentation::kNone);
  EXPECT_EQ(ParseAugmentation("flip").status().message(),
            "\"flip\": expected none, pad-crop or resized-crop");
}

}  // namespace
}  // namespace plait::data
