// Which images are taken, and how they are called.
#include "data/idx/open_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "data/idx/image_folder.h"
#include "data/idx/synthetic_images.h"
#include "data/idx/testing/idx_files.h"

namespace plait::data {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A folder that is not yet there.
std::string NewFolder(const std::string& name) {
  std::string folder = absl::StrCat(testing::TempDir(), "/", name);
  fs::remove_all(folder);
  return folder;
}

void ExpectSameImages(const ImageSplit& found, const ImageSplit& expected) {
  EXPECT_EQ(found.rows, expected.rows);
  EXPECT_EQ(found.columns, expected.columns);
  EXPECT_EQ(found.images, expected.images);
  EXPECT_EQ(found.labels, expected.labels);
}

void ExpectSmallSetIn(const std::string& folder) {
  const absl::StatusOr<ImageSet> set = ReadImageFolder(folder);
  ASSERT_TRUE(set.ok()) << set.status();
  ExpectSameImages(set->train, SmallImageSet().train);
  ExpectSameImages(set->test, SmallImageSet().test);
  EXPECT_EQ(set->class_names, SmallImageSet().class_names);
  EXPECT_THAT(set->description(), StartsWith("IDX files in " + folder));
}

std::string ErrorOf(const absl::StatusOr<ImageSet>& set, absl::StatusCode code) {
  EXPECT_EQ(set.status().code(), code) << set.status();
  return std::string(set.status().message());
}

TEST(ReadImageFolder, FindsTheFilesInTheirUsualPlaces) {
  const std::string root = NewFolder("places");
  for (const std::string below : {"/plain", "/packed", "/below/raw", "/torchvision/MNIST/raw"}) {
    WriteImageFolder(SmallImageSet(), root + below, below != "/plain");
  }
  for (const std::string folder : {"/plain", "/packed", "/below", "/torchvision"})
    ExpectSmallSetIn(root + folder);
  for (const std::string name : {"train-images", "train-labels", "t10k-images", "t10k-labels"}) {
    const std::string type = name.find("images") == std::string::npos ? "idx1-ubyte" : "idx3-ubyte";
    const std::string path = absl::StrCat(root, "/plain/", name);
    fs::rename(absl::StrCat(path, "-", type), absl::StrCat(path, ".", type));
  }
  ExpectSmallSetIn(root + "/plain");
}

TEST(ReadImageFolder, NamesClassesByTheLargestLabel) {
  ImageSet made = SmallImageSet();
  made.test.labels[2] = 46;
  const std::string folder = NewFolder("letters");
  WriteImageFolder(made, folder, true);
  EXPECT_EQ(ReadImageFolder(folder)->class_names.size(), 47u);
}

TEST(ReadImageFolder, SaysWhatIsMissing) {
  const std::string folder = NewFolder("incomplete");
  EXPECT_THAT(ErrorOf(ReadImageFolder(folder), absl::StatusCode::kNotFound),
              StartsWith(folder + ": no IDX images here: expected train-images-idx3-ubyte, "));
  WriteImageFolder(SmallImageSet(), folder, true);
  fs::remove(folder + "/t10k-labels-idx1-ubyte.gz");
  EXPECT_EQ(ErrorOf(ReadImageFolder(folder), absl::StatusCode::kFailedPrecondition),
            folder + ": t10k-labels-idx1-ubyte is missing, plain or .gz");
}

TEST(ReadImageFolder, SaysWhatDoesNotMatch) {
  ImageSet made = SmallImageSet();
  std::swap(made.test.rows, made.test.columns);
  const std::string folder = NewFolder("mixed");
  WriteImageFolder(made, folder, false);
  EXPECT_EQ(ErrorOf(ReadImageFolder(folder), absl::StatusCode::kInvalidArgument),
            folder + ": training images of 6 x 4, test images of 4 x 6; take one set's files");
  made = SmallImageSet();
  made.test.labels.pop_back();
  WriteImageFolder(SmallImageSet(), folder, false);
  WriteBytes(folder + "/t10k-labels-idx1-ubyte", IdxLabelBytes(made.test));
  EXPECT_THAT(ErrorOf(ReadImageFolder(folder), absl::StatusCode::kInvalidArgument),
              HasSubstr("t10k-images-idx3-ubyte: 5 images, but 4 labels in "));
}

TEST(OpenImages, TakesTheGivenFolderAlone) {
  const std::string given = NewFolder("given"), package = NewFolder("package");
  WriteImageFolder(SmallImageSet(), package, true);
  EXPECT_THAT(ErrorOf(OpenImages({.data_dir = given, .package_dir = package}), absl::StatusCode::kNotFound),
              StartsWith(given));
  ImageSet made = SmallImageSet();
  made.train.labels[0] = 8;
  WriteImageFolder(made, given, true);
  const absl::StatusOr<ImageSet> set = OpenImages({.data_dir = given, .package_dir = package});
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->train.labels[0], 8);
  EXPECT_FALSE(set->synthetic);
  EXPECT_THAT(ErrorOf(OpenImages({.data_dir = given, .synthetic = true}), absl::StatusCode::kInvalidArgument),
              HasSubstr("choose one"));
}

TEST(OpenImages, ThenFashionMnistOfThePackage) {
  const std::string package = NewFolder("fashion");
  WriteImageFolder(SmallImageSet(), package, true);
  const absl::StatusOr<ImageSet> set = OpenImages({.package_dir = package});
  ASSERT_TRUE(set.ok()) << set.status();
  ExpectSameImages(set->train, SmallImageSet().train);
  EXPECT_THAT(set->class_names, ElementsAre("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal",
                                            "Shirt", "Sneaker", "Bag", "Ankle boot"));
  EXPECT_EQ(set->description(), "Fashion-MNIST (Debian package dataset-fashion-mnist) in " + package);
  // What is there but damaged is no reason to go on with something else.
  WriteBytes(package + "/train-images-idx3-ubyte.gz", "nothing");
  EXPECT_THAT(ErrorOf(OpenImages({.package_dir = package}), absl::StatusCode::kInvalidArgument),
              HasSubstr("not an IDX file"));
}

TEST(OpenImages, ThenAStandInThatSaysSo) {
  const ImageOptions none = {
      .package_dir = NewFolder("no_package"), .synthetic_train_samples = 30, .synthetic_test_samples = 20};
  const absl::StatusOr<ImageSet> set = OpenImages(none);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_TRUE(set->synthetic);
  EXPECT_THAT(set->description(), StartsWith("synthetic stand-in"));
  EXPECT_THAT(set->description(), HasSubstr("install dataset-fashion-mnist"));
  EXPECT_EQ(set->train.samples(), 30);
  EXPECT_EQ(set->test.samples(), 20);
  const std::string package = NewFolder("unused_package");
  WriteImageFolder(SmallImageSet(), package, true);
  EXPECT_TRUE(OpenImages({.package_dir = package, .synthetic = true})->synthetic);
}

TEST(SyntheticImages, AreOfTheirSizeBalancedAndRepeatable) {
  const ImageSet set = SyntheticImages(40, 20, 3);
  for (const ImageSplit* split : {&set.train, &set.test}) {
    EXPECT_EQ(split->rows, 28);
    EXPECT_EQ(split->columns, 28);
    EXPECT_EQ(static_cast<std::int64_t>(split->images.size()), split->samples() * 28 * 28);
    for (int label = 0; label < 10; ++label) {
      EXPECT_EQ(std::count(split->labels.begin(), split->labels.end(), label), split->samples() / 10);
    }
  }
  EXPECT_EQ(set.train.images, SyntheticImages(40, 20, 3).train.images);
  EXPECT_NE(set.train.images, SyntheticImages(40, 20, 4).train.images);
  EXPECT_FALSE(std::equal(set.test.images.begin(), set.test.images.end(), set.train.images.begin()));
}

std::array<std::vector<double>, 10> MeanImages(const ImageSplit& split) {
  std::array<std::vector<double>, 10> means;
  for (std::vector<double>& mean : means) mean.resize(split.pixels());
  for (std::int64_t i = 0; i < split.samples(); ++i) {
    for (std::int64_t k = 0; k < split.pixels(); ++k) {
      means[split.labels[i]][k] += split.images[i * split.pixels() + k] * 10.0 / split.samples();
    }
  }
  return means;
}

int NearestMean(const std::array<std::vector<double>, 10>& means, const std::uint8_t* image) {
  std::array<double, 10> distance{};
  for (int label = 0; label < 10; ++label) {
    for (std::size_t k = 0; k < means[label].size(); ++k) {
      distance[label] += (image[k] - means[label][k]) * (image[k] - means[label][k]);
    }
  }
  return std::min_element(distance.begin(), distance.end()) - distance.begin();
}

// The nearest of ten mean images names the label far more often than chance: 10 %, with a standard deviation
// of sqrt(0.1 * 0.9 / 500) = 1.3 %. A bound of 40 % is 22 of them away.
TEST(SyntheticImages, CanBeLearnt) {
  const ImageSet set = SyntheticImages(1000, 500, 1);
  const std::array<std::vector<double>, 10> means = MeanImages(set.train);
  int right = 0;
  for (std::int64_t i = 0; i < 500; ++i) {
    right += NearestMean(means, set.test.images.data() + i * set.test.pixels()) == set.test.labels[i];
  }
  EXPECT_GT(right, 200);
}

}  // namespace
}  // namespace plait::data
