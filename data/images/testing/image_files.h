// Small image files for tests, written byte by byte as the formats say.
#ifndef PLAIT_DATA_IMAGES_TESTING_IMAGE_FILES_H_
#define PLAIT_DATA_IMAGES_TESTING_IMAGE_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "data/images/image_source.h"

namespace plait::data {

// An image whose pixels all differ from their neighbours.
Image PatternImage(std::int64_t rows, std::int64_t columns, std::int64_t channels = 3);

// A PNG file, 8 bits a sample: grey or colour by the image's channels.
std::string PngBytes(const Image& image);

// The same of 16 bits a sample; 2 channels: grey with alpha, 4: colour with alpha.
std::string PngBytes16(std::int64_t rows, std::int64_t columns, std::int64_t channels,
                       const std::vector<std::uint16_t>& samples);

// CIFAR-10's records: image k has label labels[k], and PatternImage moved on by k.
std::string CifarBytes(const std::vector<int>& labels);

// Creates the directory if needed.
void WriteFile(const std::string& path, absl::string_view bytes);

}  // namespace plait::data

#endif  // PLAIT_DATA_IMAGES_TESTING_IMAGE_FILES_H_
