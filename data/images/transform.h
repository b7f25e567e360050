// From images of any size to the numbers that a network takes: a part of the image, resized, mirrored or not,
// normalized.
//
//   const ImageTransform transform({.size = 224, .augmentation = Augmentation::kResizedCrop, .seed = 1,
//                                   .scale = sets.scale});
//   std::vector<float> x(3 * 224 * 224);
//   transform.Apply(image, epoch, index, absl::MakeSpan(x));        // (channels, size, size)
//
// What is drawn is a function of (seed, epoch, index): the same for any number of ranks, and after a resume.
// Resizing is bilinear and, where it shrinks, averages over all pixels under a triangle, as PIL and torchvision's
// antialias do. Local.
#ifndef PLAIT_DATA_IMAGES_TRANSFORM_H_
#define PLAIT_DATA_IMAGES_TRANSFORM_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/seed.h"
#include "data/images/image_source.h"

namespace plait::data {

enum class Augmentation {
  kNone,         // the square in the middle
  kPadCrop,      // that square, moved by up to an eighth of its side, black where there is no image; mirrored
                 // with probability 1/2: He et al., arXiv:1512.03385, section 4.2
  kResizedCrop,  // 8 to 100 % of the area, sides 3/4 to 4/3, anywhere; mirrored with probability 1/2: Szegedy et
                 // al., arXiv:1409.4842, section 6
};

// "none", "pad-crop", "resized-crop". InvalidArgument that lists them.
absl::StatusOr<Augmentation> ParseAugmentation(absl::string_view name);

// A part of an image, in pixels; it may reach beyond the image.
struct Crop {
  std::int64_t row = 0, column = 0, rows = 0, columns = 0;
  bool mirrored = false;
};

// The square in the middle whose side is `fraction` of the shorter side, rounded.
Crop CentreCrop(const Image& image, double fraction);
Crop DrawCrop(Augmentation augmentation, const Image& image, double fraction, base::RandomStream& random);

struct TransformOptions {
  std::int64_t size = 224;  // rows and columns; 0: images stay as they are
  Augmentation augmentation = Augmentation::kNone;
  double centre_fraction = 1;  // of the shorter side, but for kResizedCrop
  std::uint64_t seed = 0;
  ChannelScale scale;
};

class ImageTransform {
 public:
  explicit ImageTransform(TransformOptions options);

  const TransformOptions& options() const { return options_; }
  // `x` (channels, size, size), or as the image. An image of other channels than the scale's is a programming error.
  void Apply(const Image& image, std::int64_t epoch, std::int64_t index, absl::Span<float> x) const;
  // The same of a crop that is given.
  void Resample(const Image& image, const Crop& crop, absl::Span<float> x) const;

 private:
  std::int64_t rows_of(const Crop& crop) const { return options_.size > 0 ? options_.size : crop.rows; }
  std::int64_t columns_of(const Crop& crop) const { return options_.size > 0 ? options_.size : crop.columns; }

  TransformOptions options_;
  std::vector<float> values_;  // (channels, 256): of unresized pixels
};

}  // namespace plait::data

#endif  // PLAIT_DATA_IMAGES_TRANSFORM_H_
