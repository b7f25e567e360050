#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "data/hdf5/atomic_file.h"
#include "data/vectors/indian_pines.h"
#include "data/vectors/peaks.h"

namespace plait::data {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// MATLAB's documentation: max(peaks) = 8.1 at (-0.0093, 1.5814), min = -6.55 at (0.2283, -1.6255); peaks(0, 0) = 0.981.
TEST(Peaks, IsMatlabsFunction) {
  EXPECT_NEAR(Peaks(-0.0093, 1.5814), 8.1062, 5e-5);
  EXPECT_NEAR(Peaks(0.2283, -1.6255), -6.5511, 5e-5);
  EXPECT_NEAR(Peaks(0, 0), 8.0 / 3 * std::exp(-1), 1e-15);
}

TEST(Peaks, ClassesAreEqualIntervalsOfTheHeight) {
  const absl::StatusOr<VectorSets> sets =
      MakePeaks({.train_samples = 1000, .validation_samples = 200, .seed = 3});
  ASSERT_TRUE(sets.ok()) << sets.status();
  EXPECT_THAT(sets->description, StartsWith("synthetic"));
  std::set<std::pair<float, float>> seen;
  for (const LabelledVectors* const part : {&sets->train, &sets->validation}) {
    std::map<std::int64_t, std::int64_t> counts;
    for (std::int64_t i = 0; i < part->samples(); ++i) {
      const float x = part->values[2 * i], y = part->values[2 * i + 1];
      // Numpy's extremes of the grid: -6.5497192262312645 and 8.105393446796095.
      const double level = 5 * (Peaks(x, y) + 6.5497192262312645) / 14.65511267302736;
      // x and y are rounded to float: 6e-8 times a slope below 20.
      EXPECT_GT(level, part->labels[i] - 1e-5);
      EXPECT_LT(level, part->labels[i] + 1 + 1e-5);
      EXPECT_TRUE(seen.emplace(x, y).second) << "a point twice";
      ++counts[part->labels[i]];
    }
    EXPECT_EQ(counts.size(), 5u);
    for (const auto& [label, count] : counts) EXPECT_EQ(count, part->samples() / 5) << label;
  }
  const VectorSets again = *MakePeaks({.train_samples = 1000, .validation_samples = 200, .seed = 3});
  EXPECT_EQ(again.train.values, sets->train.values);
  EXPECT_NE(MakePeaks({.train_samples = 1000, .validation_samples = 200, .seed = 4})->train.values,
            sets->train.values);
}

TEST(Peaks, CountsThatCannotBe) {
  EXPECT_THAT(std::string(MakePeaks({.train_samples = 12}).status().message()),
              HasSubstr("12 training points: expected a positive multiple of the 5 classes"));
  EXPECT_THAT(std::string(MakePeaks({.train_samples = 9000, .validation_samples = 0}).status().message()),
              HasSubstr("0 validation points"));
  // Numpy counts 1798 points in the highest class.
  EXPECT_TRUE(MakePeaks({.train_samples = 8790, .validation_samples = 200}).ok());
  EXPECT_THAT(std::string(MakePeaks({.train_samples = 8795, .validation_samples = 200}).status().message()),
              HasSubstr("class 4 has 1798 of them, 1799 are asked for"));
}

class IndianPines : public ::testing::Test {
 protected:
  IndianPines() : folder_(absl::StrCat(testing::TempDir(), "/pines")) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void Copy(const std::string& from, const std::string& to) {
    ASSERT_TRUE(fs::copy_file("data/matlab/testing/files/" + from, folder_ + "/" + to));
  }
  std::string folder_;
};

// Of make_files.py: label (i + j) mod 4 of pixel (i, j), whose band k has 100 i + 10 j + k^2.
TEST_F(IndianPines, PixelsOfTheCubeWithTheirLabels) {
  Copy("pines/Indian_pines_gt.mat", "Indian_pines_gt.mat");
  Copy("pines/Indian_pines_corrected.mat", "Indian_pines_corrected.mat");
  const absl::StatusOr<VectorSets> sets = OpenIndianPines({.folder = folder_, .train_fraction = 0.75});
  ASSERT_TRUE(sets.ok()) << sets.status();
  EXPECT_EQ(sets->classes, 3);
  EXPECT_EQ(sets->train.width, 4);
  EXPECT_THAT(sets->description, StartsWith("Indian Pines in "));
  std::map<int, std::vector<double>> bases;  // band 0 of the pixels of each class
  double sum = 0, squares = 0;
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 7; ++j) {
      if ((i + j) % 4 > 0) bases[(i + j) % 4 - 1].push_back(100 * i + 10 * j);
    }
  }
  std::int64_t pixels = 0, training = 0;
  for (const auto& [label, of_class] : bases) {
    pixels += std::ssize(of_class);
    training += std::lround(0.75 * static_cast<double>(of_class.size()));
  }
  EXPECT_EQ(sets->train.samples(), training);
  EXPECT_EQ(sets->train.samples() + sets->validation.samples(), pixels);
  for (std::int64_t i = 0; i < training; ++i) {
    // All bands of a pixel differ by constants, which normalising removes.
    for (int band = 1; band < 4; ++band)
      EXPECT_NEAR(sets->train.values[4 * i + band], sets->train.values[4 * i], 1e-5);
    sum += sets->train.values[4 * i];
    squares += sets->train.values[4 * i] * sets->train.values[4 * i];
  }
  EXPECT_NEAR(sum / static_cast<double>(training), 0, 1e-6);
  EXPECT_NEAR(squares / static_cast<double>(training), 1, 1e-6);
  // Normalised numbers are a straight line in the true ones: two classes' extremes give it, all others are on it.
  std::map<std::int64_t, std::multiset<double>> found;
  for (const LabelledVectors* const part : {&sets->train, &sets->validation}) {
    for (std::int64_t i = 0; i < part->samples(); ++i) found[part->labels[i]].insert(part->values[4 * i]);
  }
  const double low = *found[0].begin(), high = *found[0].rbegin();
  auto [least, most] = std::minmax_element(bases[0].begin(), bases[0].end());
  for (auto& [label, of_class] : bases) {
    std::sort(of_class.begin(), of_class.end());
    ASSERT_EQ(found[label].size(), of_class.size());
    std::size_t at = 0;
    for (const double value : found[label]) {
      EXPECT_NEAR(value, low + (high - low) * (of_class[at++] - *least) / (*most - *least), 1e-5);
    }
  }
}

TEST_F(IndianPines, WithoutACubeOneIsMade) {
  Copy("pines/Indian_pines_gt.mat", "Indian_pines_gt.mat");
  const absl::StatusOr<VectorSets> sets = OpenIndianPines({.folder = folder_});
  ASSERT_TRUE(sets.ok()) << sets.status();
  EXPECT_THAT(sets->description, StartsWith("synthetic cube (generated) with the real ground truth of "));
  EXPECT_EQ(sets->train.width, 200);
}

TEST_F(IndianPines, BadInput) {
  const auto error = [&] { return std::string(OpenIndianPines({.folder = folder_}).status().message()); };
  EXPECT_THAT(error(), HasSubstr("Indian_pines_gt.mat"));
  Copy("pines/Indian_pines_gt.mat", "Indian_pines_gt.mat");
  Copy("one.mat", "Indian_pines_corrected.mat");
  EXPECT_THAT(error(),
              HasSubstr("Indian_pines_corrected.mat: 4 x 6 x 2, but Indian_pines_gt.mat has 6 x 7 pixels; "
                        "expected the same rows and columns"));
  fs::remove(folder_ + "/Indian_pines_corrected.mat");
  Copy("pines/Indian_pines_gt.mat", "Indian_pines_corrected.mat");
  EXPECT_THAT(error(), HasSubstr("an array of 6 x 7: expected rows x columns x bands"));
  fs::remove(folder_ + "/Indian_pines_gt.mat");
  Copy("one.mat", "Indian_pines_gt.mat");
  EXPECT_THAT(error(), HasSubstr("Indian_pines_gt.mat: an array of 4 x 6 x 2: expected rows x columns"));
}

}  // namespace
}  // namespace plait::data
