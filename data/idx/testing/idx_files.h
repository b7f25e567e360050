// Small image sets and IDX files for tests, written byte by byte as the format says.
#ifndef PLAIT_DATA_IDX_TESTING_IDX_FILES_H_
#define PLAIT_DATA_IDX_TESTING_IDX_FILES_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "data/idx/image_set.h"

namespace plait::data {

// Seven images for training and five for testing, of 6 x 4 pixels, which together have all grey levels; labels cover
// 0..9.
ImageSet SmallImageSet();

// A whole IDX file.
std::string IdxImageBytes(const ImageSplit& split);
std::string IdxLabelBytes(const ImageSplit& split);

// One gzip member.
std::string GzipOf(absl::string_view bytes);

void WriteBytes(const std::string& path, absl::string_view bytes);

// Writes the four files; creates the directory if needed.
void WriteImageFolder(const ImageSet& set, const std::string& folder, bool gzip);

}  // namespace plait::data

#endif  // PLAIT_DATA_IDX_TESTING_IDX_FILES_H_
