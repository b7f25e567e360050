// MNIST and Fashion-MNIST as they were published; made images through the same checks where they are absent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "data/idx/open_images.h"
#include "data/idx/testing/idx_files.h"
#include "data/testing/har_files.h"

namespace plait::data {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

struct KnownSplit {
  std::vector<std::int64_t> samples_of_class;
  std::vector<std::uint8_t> first_labels;
  unsigned long pixels_crc32, labels_crc32;  // of the unpacked bytes behind the headers
};

struct KnownSet {
  std::int64_t rows, columns;
  KnownSplit train, test;
  PixelScale scale;  // of the training images
  double rounding;   // of the scale, as it is written here
};

// Counts of the data sets' own pages; mean and deviation as every program quotes them; checksums by Python's
// zlib of the files that have the published MD5 sums.
const KnownSet kMnist = {28,
                         28,
                         {{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949},
                          {5, 0, 4, 1, 9, 2, 1, 3, 1, 4},
                          0xf3639b56,
                          0xba07e8ef},
                         {{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009},
                          {7, 2, 1, 0, 4, 1, 4, 9, 5, 9},
                          0xe4ca5f57,
                          0xee8604d9},
                         {0.1307, 0.3081},
                         0.5e-4};
const KnownSet kFashionMnist = {
    28,
    28,
    {std::vector<std::int64_t>(10, 6000), {9, 0, 0, 3, 0, 2, 7, 2, 5, 5}, 0xae65dccd, 0x2ed6e46a},
    {std::vector<std::int64_t>(10, 1000), {9, 2, 1, 1, 6, 1, 4, 6, 5, 7}, 0x12728439, 0x242bc73f},
    {0.2860, 0.3530},
    0.5e-4};

unsigned long Crc32(const std::vector<std::uint8_t>& bytes) { return crc32_z(0, bytes.data(), bytes.size()); }

KnownSplit KnownOf(const ImageSplit& split) {
  KnownSplit known{std::vector<std::int64_t>(10), split.labels, Crc32(split.images), Crc32(split.labels)};
  for (const std::uint8_t label : split.labels) ++known.samples_of_class.at(label);
  return known;
}

void ExpectSplit(const ImageSplit& split, const KnownSet& set, const KnownSplit& known) {
  EXPECT_EQ(split.rows, set.rows);
  EXPECT_EQ(split.columns, set.columns);
  const KnownSplit found = KnownOf(split);
  EXPECT_EQ(found.samples_of_class, known.samples_of_class);
  EXPECT_EQ(found.pixels_crc32, known.pixels_crc32);
  EXPECT_EQ(found.labels_crc32, known.labels_crc32);
  ASSERT_GE(split.labels.size(), known.first_labels.size());
  EXPECT_TRUE(std::equal(known.first_labels.begin(), known.first_labels.end(), split.labels.begin()));
}

void ExpectSet(const absl::StatusOr<ImageSet>& set, const KnownSet& known) {
  ASSERT_TRUE(set.ok()) << set.status();
  ExpectSplit(set->train, known, known.train);
  ExpectSplit(set->test, known, known.test);
  EXPECT_FALSE(set->synthetic);
  const PixelScale scale = ScaleOf(set->train);
  EXPECT_NEAR(scale.mean, known.scale.mean, known.rounding);
  EXPECT_NEAR(scale.standard_deviation, known.scale.standard_deviation, known.rounding);
}

// In long double: what ScaleOf may differ by are its own few roundings in double, below 1e-14.
PixelScale ScaleByTwoPasses(const ImageSplit& split) {
  const double count = split.images.size();
  long double mean = 0, variance = 0;
  for (const std::uint8_t pixel : split.images) mean += pixel / 255.0L / count;
  for (const std::uint8_t pixel : split.images) {
    variance += (pixel / 255.0L - mean) * (pixel / 255.0L - mean) / count;
  }
  return {static_cast<double>(mean), static_cast<double>(std::sqrt(variance))};
}

// The folder of this name among the real data sets, with what is known of it; else one of made images.
std::string FolderOr(const std::string& name, KnownSet& known) {
  const std::optional<std::string> real = RealDataFolder();
  if (real && fs::is_directory(absl::StrCat(*real, "/", name))) return absl::StrCat(*real, "/", name);
  std::cout << "No " << name << " here: made images take its place.\n";
  const ImageSet made = SmallImageSet();
  std::string folder = absl::StrCat(testing::TempDir(), "/", name);
  WriteImageFolder(made, folder, true);
  known = {6, 4, KnownOf(made.train), KnownOf(made.test), ScaleByTwoPasses(made.train), 1e-14};
  return folder;
}

TEST(RealImages, MnistIsReadAsPublished) {
  KnownSet known = kMnist;
  const std::string folder = FolderOr("mnist", known);
  ExpectSet(OpenImages({.data_dir = folder}), known);
}

TEST(RealImages, FashionMnistIsReadAsPublished) {
  KnownSet known = kFashionMnist;
  const std::string folder = FolderOr("fashion-mnist", known);
  ExpectSet(OpenImages({.data_dir = folder}), known);
}

// What a program without flags gets on this machine: the package's images, if it is installed.
TEST(RealImages, TheDefaultIsThePackageWhereItIsInstalled) {
  const absl::StatusOr<ImageSet> set = OpenImages({});
  if (fs::exists("/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz")) {
    ExpectSet(set, kFashionMnist);
    EXPECT_THAT(set->description(), HasSubstr("Fashion-MNIST"));
  } else {
    ASSERT_TRUE(set.ok()) << set.status();
    EXPECT_TRUE(set->synthetic);
    EXPECT_EQ(set->train.samples(), 6000);
    EXPECT_EQ(set->test.samples(), 1000);
  }
}

}  // namespace
}  // namespace plait::data
