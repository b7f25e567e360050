// Labelled images by index, wherever they lie, and sets of them.
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

// The same for any number of ranks; each reads what it needs. Local.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  virtual std::int64_t samples() const = 0;
  virtual std::int64_t label(std::int64_t index) const = 0;  // 0 <= label < classes
  // Errors of the file, "FILE: what"; sets in memory have none.
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
  std::int64_t rows = 0, columns = 0;  // of every image; 0: of any size
  ChannelScale scale;
  std::string source;  // where the images come from, for people
  bool synthetic = false;

  // The source; begins with "synthetic" where the images are made up. Belongs into every line that names the
  // data.
  std::string description() const;
};

// At most the first `samples` of a source.
std::shared_ptr<const ImageSource> FirstOf(std::shared_ptr<const ImageSource> source, std::int64_t samples);

// Mean and (population) standard deviation of pixel / 255, by channel, over the first `at_most` images, to four
// digits. A deviation of zero is given as 1. Errors of Read.
absl::StatusOr<ChannelScale> ScaleOf(const ImageSource& source, std::int64_t channels, std::int64_t at_most);

// Grey images in memory (data/idx).
ImageSets FromGreyImages(ImageSet set);

}  // namespace plait::data

#endif  // PLAIT_DATA_IMAGES_IMAGE_SOURCE_H_
