// Labelled greyscale images in memory, as the readers return them; FromGreyImages (data/images) adapts them for
// training.
//
//   const PixelScale scale = ScaleOf(set.train);                           // MNIST: 0.1307, 0.3081
#ifndef PLAIT_DATA_IDX_IMAGE_SET_H_
#define PLAIT_DATA_IDX_IMAGE_SET_H_

#include <cstdint>
#include <string>
#include <vector>

namespace plait::data {

struct ImageSplit {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<std::uint8_t> images;  // (samples, rows, columns), row-major
  std::vector<std::uint8_t> labels;  // (samples), 0 <= label < classes

  std::int64_t samples() const { return static_cast<std::int64_t>(labels.size()); }
  std::int64_t pixels() const { return rows * columns; }  // of one image
};

struct ImageSet {
  ImageSplit train, test;  // images of the same size
  std::vector<std::string> class_names;
  std::string source;  // where the images come from, human-readable
  bool synthetic = false;

  // The source, prefixed with "synthetic" if the images are generated. Programs print it wherever they name their
  // data.
  std::string description() const;
};

// Pixels become (pixel / 255 - mean) / standard_deviation; by default they lie in [0, 1].
struct PixelScale {
  double mean = 0;
  double standard_deviation = 1;
};

// Mean and (population) standard deviation of pixel / 255 over all pixels of a split; a deviation of zero becomes 1.
// CHECK-fails without images.
PixelScale ScaleOf(const ImageSplit& split);

}  // namespace plait::data

#endif  // PLAIT_DATA_IDX_IMAGE_SET_H_
