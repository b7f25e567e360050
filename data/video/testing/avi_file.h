// Small files for tests, written byte by byte: videos with known pixels.
#ifndef PLAIT_DATA_VIDEO_TESTING_AVI_FILE_H_
#define PLAIT_DATA_VIDEO_TESTING_AVI_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "data/images/image_source.h"

namespace plait::data {

// An AVI file (RIFF, with an index) of uncompressed frames of three channels, all of one size.
// With `sound`, a stream of silence with chunks of that many bytes behind the frames.
std::string AviBytes(const std::vector<Image>& frames, std::int64_t sound = 0);

// A WAV file: a second of silence, and no picture.
std::string WavBytes();

}  // namespace plait::data

#endif  // PLAIT_DATA_VIDEO_TESTING_AVI_FILE_H_
