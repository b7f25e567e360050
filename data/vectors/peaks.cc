#include "data/vectors/peaks.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/seed.h"

namespace plait::data {
namespace {

constexpr std::int64_t kSide = 256, kClasses = 5;
constexpr double kReach = 3;

double Coordinate(std::int64_t i) { return -kReach + 2 * kReach * static_cast<double>(i) / (kSide - 1); }

// Indices of the grid's points, row by row, for each class.
std::vector<std::vector<std::int64_t>> PointsByClass() {
  std::vector<double> heights;
  for (std::int64_t i = 0; i < kSide * kSide; ++i)
    heights.push_back(Peaks(Coordinate(i % kSide), Coordinate(i / kSide)));
  const auto [low, high] = std::minmax_element(heights.begin(), heights.end());
  std::vector<std::vector<std::int64_t>> points(kClasses);
  for (std::int64_t i = 0; i < kSide * kSide; ++i) {
    const double level = kClasses * (heights[i] - *low) / (*high - *low);
    points[std::min(kClasses - 1, static_cast<std::int64_t>(level))].push_back(i);
  }
  return points;
}

void Add(std::int64_t point, std::int64_t label, LabelledVectors& vectors) {
  vectors.values.push_back(static_cast<float>(Coordinate(point % kSide)));
  vectors.values.push_back(static_cast<float>(Coordinate(point / kSide)));
  vectors.labels.push_back(label);
}

absl::Status CheckCount(const char* what, std::int64_t samples) {
  if (samples > 0 && samples % kClasses == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      samples, " ", what, " points: expected a positive multiple of the ", kClasses, " classes"));
}

}  // namespace

double Peaks(double x, double y) {
  return 3 * (1 - x) * (1 - x) * std::exp(-x * x - (y + 1) * (y + 1)) -
         10 * (x / 5 - x * x * x - std::pow(y, 5)) * std::exp(-x * x - y * y) -
         std::exp(-(x + 1) * (x + 1) - y * y) / 3;
}

absl::StatusOr<VectorSets> MakePeaks(const PeaksOptions& options) {
  for (const absl::Status& status : {CheckCount("training", options.train_samples),
                                     CheckCount("validation", options.validation_samples)}) {
    if (!status.ok()) return status;
  }
  VectorSets sets = {
      .train = {.width = 2, .values = {}, .labels = {}},
      .validation = {.width = 2, .values = {}, .labels = {}},
      .classes = kClasses,
      .description = absl::StrCat("synthetic (generated): peaks on ", kSide, " x ", kSide, " points")};
  std::vector<std::vector<std::int64_t>> points = PointsByClass();
  const std::int64_t train = options.train_samples / kClasses,
                     validation = options.validation_samples / kClasses;
  for (std::int64_t label = 0; label < kClasses; ++label) {
    std::vector<std::int64_t>& of_class = points[label];
    if (train + validation > static_cast<std::int64_t>(of_class.size())) {
      return absl::InvalidArgumentError(absl::StrCat(
          options.train_samples, " training and ", options.validation_samples, " validation points: class ",
          label, " has ", of_class.size(), " of them, ", train + validation, " are asked for"));
    }
    base::RandomStream stream(base::DeriveSeed(options.seed, "peaks", label));
    base::Shuffle(stream, absl::MakeSpan(of_class));
    for (std::int64_t i = 0; i < train; ++i) Add(of_class[i], label, sets.train);
    for (std::int64_t i = train; i < train + validation; ++i) Add(of_class[i], label, sets.validation);
  }
  return sets;
}

}  // namespace plait::data
