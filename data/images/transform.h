// Image preprocessing and augmentation: crop, resize, random horizontal flip, normalization.
//
//   const ImageTransform transform({.size = 224, .augmentation = Augmentation::kResizedCrop, .seed = 1,
//                                   .scale = sets.scale});
//   std::vector<float> x(3 * 224 * 224);
//   transform.Apply(image, epoch, index, absl::MakeSpan(x));        // (channels, size, size)
//
// Random choices are a function of (seed, epoch, index): the same for any number of ranks, and after a resume.
// Resizing as in resize.h. Local.
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
  kNone,         // the centre
  kPadCrop,      // that part, shifted by up to an eighth of its side (black outside of the image), flipped
                 // with probability 1/2: He et al., arXiv:1512.03385, section 4.2
  kResizedCrop,  // torchvision's RandomResizedCrop: 8 to 100 % of the area, aspect ratio 3/4 to 4/3, flipped
                 // with probability 1/2: Szegedy et al., arXiv:1409.4842, section 6
};

// Parses "none", "pad-crop" or "resized-crop"; InvalidArgument lists them.
absl::StatusOr<Augmentation> ParseAugmentation(absl::string_view name);

// A part of an image, in pixels; it may reach beyond the image.
struct Crop {
  std::int64_t row = 0, column = 0, rows = 0, columns = 0;
  bool mirrored = false;
};

// The centre of an image: a square, or, where `squeezes`, a part of the image's own shape, which resizing makes square.
struct Centre {
  double fraction = 1;  // its side / the image's shorter side, or of each side; rounded, at least 1 pixel
  bool squeezes = false;
};
Crop CentreCrop(const Image& image, const Centre& centre);
// Draws a crop for `augmentation`. kResizedCrop has its own parts.
Crop DrawCrop(Augmentation augmentation, const Image& image, const Centre& centre,
              base::RandomStream& random);

struct TransformOptions {
  std::int64_t size = 224;  // output rows and columns; 0: no crop, resizing or augmentation
  Augmentation augmentation = Augmentation::kNone;
  Centre centre = {};  // not for kResizedCrop
  std::uint64_t seed = 0;
  ChannelScale scale;
};

class ImageTransform {
 public:
  explicit ImageTransform(TransformOptions options);

  const TransformOptions& options() const { return options_; }
  // Writes `x` (channels, size, size), or (channels, rows, columns) of the image if size is 0. CHECK-fails if the
  // image's channels differ from the scale's, or `x` has another size.
  void Apply(const Image& image, std::int64_t epoch, std::int64_t index, absl::Span<float> x) const;
  // The same for a given crop.
  void Resample(const Image& image, const Crop& crop, absl::Span<float> x) const;

 private:
  std::int64_t rows_of(const Crop& crop) const { return options_.size > 0 ? options_.size : crop.rows; }
  std::int64_t columns_of(const Crop& crop) const { return options_.size > 0 ? options_.size : crop.columns; }

  TransformOptions options_;
  std::vector<float> values_;  // (channels, 256): lookup table for crops that are not resized
};

}  // namespace plait::data

#endif  // PLAIT_DATA_IMAGES_TRANSFORM_H_
