#include "data/vectors/indian_pines.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/seed.h"
#include "base/status_macros.h"

namespace plait::data {
namespace {

constexpr char kTruth[] = "Indian_pines_gt.mat", kCube[] = "Indian_pines_corrected.mat",
               kWholeCube[] = "Indian_pines.mat";
constexpr std::int64_t kBands = 200;
constexpr double kMostLabel = 255;

std::string Sizes(const MatlabArray& array) { return absl::StrJoin(array.shape, " x "); }

absl::Status CheckTruth(const MatlabArray& truth) {
  if (truth.shape.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("an array of ", Sizes(truth), ": expected rows x columns"));
  }
  for (const double label : truth.values) {
    if (label < 0 || label > kMostLabel || label != std::floor(label)) {
      return absl::InvalidArgumentError(
          absl::StrCat("label ", label, ": expected integers from 0 to ", kMostLabel));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCube(const MatlabArray& cube, const MatlabArray& truth) {
  if (cube.shape.size() != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("an array of ", Sizes(cube), ": expected rows x columns x bands"));
  }
  if (cube.shape[0] == truth.shape[0] && cube.shape[1] == truth.shape[1]) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(Sizes(cube), ", but ", kTruth, " has ", Sizes(truth),
                                                 " pixels; expected the same rows and columns"));
}

struct Scene {
  MatlabArray truth, cube;
  bool synthetic = false;
};

absl::StatusOr<Scene> ReadScene(const std::string& folder, std::uint64_t seed) {
  Scene scene;
  const std::string truth_path = absl::StrCat(folder, "/", kTruth);
  PLAIT_ASSIGN_OR_RETURN(scene.truth, ReadMatlabArray(truth_path));
  PLAIT_RETURN_IF_ERROR(base::Prefixed(CheckTruth(scene.truth), truth_path));
  for (const char* const name : {kCube, kWholeCube}) {
    const std::string path = absl::StrCat(folder, "/", name);
    absl::StatusOr<MatlabArray> cube = ReadMatlabArray(path);
    if (absl::IsNotFound(cube.status())) continue;
    PLAIT_RETURN_IF_ERROR(cube.status());
    PLAIT_RETURN_IF_ERROR(base::Prefixed(CheckCube(*cube, scene.truth), path));
    scene.cube = *std::move(cube);
    return scene;
  }
  scene.cube = MakeCube(scene.truth, kBands, seed);
  scene.synthetic = true;
  return scene;
}

void AddPixel(const Scene& scene, std::int64_t pixel, std::int64_t label, LabelledVectors& vectors) {
  const auto pixels = static_cast<std::int64_t>(scene.truth.values.size());
  for (std::int64_t band = 0; band < vectors.width; ++band) {
    vectors.values.push_back(static_cast<float>(scene.cube.values[pixel + band * pixels]));
  }
  vectors.labels.push_back(label);
}

void Normalise(LabelledVectors& train, LabelledVectors& validation) {
  for (std::int64_t band = 0; band < train.width; ++band) {
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < train.samples(); ++i) {
      const double value = train.values[i * train.width + band];
      sum += value;
      squares += value * value;
    }
    const auto count = static_cast<double>(train.samples());
    const double mean = sum / count, variance = std::max(0.0, squares / count - mean * mean);
    const double deviation = variance > 0 ? std::sqrt(variance) : 1;
    for (LabelledVectors* const part : {&train, &validation}) {
      for (std::int64_t i = 0; i < part->samples(); ++i) {
        float& value = part->values[i * part->width + band];
        value = static_cast<float>((value - mean) / deviation);
      }
    }
  }
}

}  // namespace

MatlabArray MakeCube(const MatlabArray& truth, std::int64_t bands, std::uint64_t seed) {
  const auto pixels = static_cast<std::int64_t>(truth.values.size());
  MatlabArray cube = {.name = "cube", .shape = {truth.shape[0], truth.shape[1], bands}, .values = {}};
  cube.values.resize(pixels * bands);
  base::RandomStream noise(base::DeriveSeed(seed, "synthetic cube"));
  for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
    // Three bumps of the class over a falling background, as bright as the pixel is.
    base::RandomStream of_class(
        base::DeriveSeed(seed, "synthetic spectrum", static_cast<std::uint64_t>(truth.values[pixel])));
    double place[3], height[3];
    for (int i = 0; i < 3; ++i) place[i] = of_class.Uniform(), height[i] = 600 * of_class.Normal();
    const double brightness = 1 + 0.1 * noise.Normal();
    for (std::int64_t band = 0; band < bands; ++band) {
      const double at = static_cast<double>(band) / static_cast<double>(bands);
      double value = 4000 - 2500 * at;
      for (int i = 0; i < 3; ++i) value += height[i] * std::exp(-100 * (at - place[i]) * (at - place[i]));
      cube.values[pixel + band * pixels] = brightness * value + 500 * noise.Normal();
    }
  }
  return cube;
}

absl::StatusOr<VectorSets> OpenIndianPines(const IndianPinesOptions& options) {
  PLAIT_ASSIGN_OR_RETURN(const Scene scene, ReadScene(options.folder, options.seed));
  std::map<std::int64_t, std::vector<std::int64_t>> pixels;  // by class, without background
  for (std::size_t i = 0; i < scene.truth.values.size(); ++i) {
    const auto label = static_cast<std::int64_t>(scene.truth.values[i]);
    if (label > 0) pixels[label].push_back(static_cast<std::int64_t>(i));
  }
  VectorSets sets;
  sets.train.width = sets.validation.width = scene.cube.shape[2];
  sets.description = absl::StrCat(
      scene.synthetic ? "synthetic cube (generated) with the real ground truth of " : "Indian Pines in ",
      options.folder, ", ", Sizes(scene.cube));
  for (auto& [label, of_class] : pixels) {
    base::RandomStream stream(base::DeriveSeed(options.seed, "indian pines", label));
    base::Shuffle(stream, absl::MakeSpan(of_class));
    const auto train = std::lround(options.train_fraction * static_cast<double>(of_class.size()));
    for (std::int64_t i = 0; i < std::ssize(of_class); ++i) {
      AddPixel(scene, of_class[i], label - 1, i < train ? sets.train : sets.validation);
    }
    sets.classes = label;
  }
  if (sets.train.samples() == 0 || sets.validation.samples() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(options.folder, ": ", sets.train.samples(),
                                                   " training and ", sets.validation.samples(),
                                                   " validation pixels; expected some of both"));
  }
  Normalise(sets.train, sets.validation);
  return sets;
}

}  // namespace plait::data
