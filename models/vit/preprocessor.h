// How images become a vision transformer's input: preprocessor_config.json beside its weights.
//
//   PLAIT_ASSIGN_OR_RETURN(const Preprocessor preprocessor, PreprocessorFrom(contents_of_the_file, /*channels=*/3));
//
// As transformers' processors read it. CLIPImageProcessor: the shorter side is resized, the centre square cut out, pixels
// divided by 255, channels scaled. ViTImageProcessor: the whole image is squeezed into a square; DeiTImageProcessor: and
// then its centre cut out. Local.
#ifndef PLAIT_MODELS_VIT_PREPROCESSOR_H_
#define PLAIT_MODELS_VIT_PREPROCESSOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plait::vit {

inline constexpr char kPreprocessorFile[] = "preprocessor_config.json";

inline constexpr std::int64_t kBilinear = 2;

struct Preprocessor {
  // By channel: an input is (pixel / 255 - mean) / deviation.
  std::vector<double> mean, deviation;
  // Side of the centre square / shorter side of the image.
  double centre_fraction = 1;
  // The image is resized to a square of whatever shape it is: centre_fraction is that of each of its sides.
  bool squeezes = false;
  // The filter that images are resized with, by PIL's number. Plait's loaders have the bilinear one alone.
  std::int64_t resample = kBilinear;

  bool operator==(const Preprocessor&) const = default;
};

// A null counts as a missing value. InvalidArgument, without a path, for values that do not fit: not one mean and
// deviation for each channel, another factor than 1/255, images that are not resized.
absl::StatusOr<Preprocessor> PreprocessorFrom(absl::string_view text, std::int64_t channels);
// The contents of the file, for square inputs of `image_size` rows.
std::string PreprocessorText(const Preprocessor& preprocessor, std::int64_t image_size);

}  // namespace plait::vit

#endif  // PLAIT_MODELS_VIT_PREPROCESSOR_H_
