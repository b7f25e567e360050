// Labelled images by index, in memory or in files.
//
//   PLAIT_ASSIGN_OR_RETURN(ImageSets sets, OpenImageSets({.data = "cifar-10-batches-bin"}));
//   PLAIT_ASSIGN_OR_RETURN(Image image, sets.train->Read(17));
//   sets.class_names[sets.train->label(17)]                      // "frog"
#ifndef PLAIT_DATA_IMAGES_IMAGE_SOURCE_H_
#define PLAIT_DATA_IMAGES_IMAGE_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/idx/image_set.h"

namespace plait::data {

struct Image {
  std::int64_t rows = 0, columns = 0;
  std::int64_t channels = 0;         // 3: red, green, blue; 1: grey
  std::vector<std::uint8_t> pixels;  // (rows, columns, channels)
};

// A map-style data set, as torch.utils.data.Dataset. The same on every rank; each reads the images it needs. Local.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  virtual std::int64_t samples() const = 0;
  virtual std::int64_t label(std::int64_t index) const = 0;  // 0 <= label < classes
  // `index` must be in range. Errors of the file, "FILE: what"; none for sets in memory.
  virtual absl::StatusOr<Image> Read(std::int64_t index) const = 0;
};

// Pixels of channel c become (pixel / 255 - mean[c]) / deviation[c].
struct ChannelScale {
  std::vector<double> mean, deviation;
};

struct ImageSets {
  std::shared_ptr<const ImageSource> train, test;
  std::vector<std::string> class_names;
  std::int64_t channels = 3;
  std::int64_t rows = 0, columns = 0;  // of every image; 0: sizes differ
  ChannelScale scale;
  std::string source;  // where the images come from, human-readable
  bool synthetic = false;
  bool sorted = false;  // by class: the first ones are of one class

  // The source, prefixed with "synthetic" if the images are generated. Programs print it wherever they name their
  // data.
  std::string description() const;
};

// The first `samples` images of a source, or all if it has fewer.
std::shared_ptr<const ImageSource> FirstOf(std::shared_ptr<const ImageSource> source, std::int64_t samples);
// The same number of images, evenly spaced.
std::shared_ptr<const ImageSource> SpacedOf(std::shared_ptr<const ImageSource> source, std::int64_t samples);

// Mean and (population) standard deviation of pixel / 255 per channel, over the first `at_most` images, rounded to
// four decimals. A deviation of zero becomes 1. Errors of Read; CHECK-fails without images.
absl::StatusOr<ChannelScale> ScaleOf(const ImageSource& source, std::int64_t channels, std::int64_t at_most);

// Wraps greyscale images in memory (data/idx); the scale is that of the training images.
ImageSets FromGreyImages(ImageSet set);

}  // namespace plait::data

#endif  // PLAIT_DATA_IMAGES_IMAGE_SOURCE_H_
