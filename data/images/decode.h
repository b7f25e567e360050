// Decodes JPEG and PNG files with FFmpeg's libavcodec.
//
//   PLAIT_ASSIGN_OR_RETURN(const Image image, ReadImage("cat/1.png"));
#ifndef PLAIT_DATA_IMAGES_DECODE_H_
#define PLAIT_DATA_IMAGES_DECODE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "data/images/image_source.h"

namespace plait::data {

// Largest file; FFmpeg counts bytes in 31 bits.
inline constexpr std::int64_t kMostImageBytes = std::int64_t{1} << 30;

// Always returns 3 channels, RGB; alpha is dropped, 16 bits are rounded to 8. InvalidArgument: neither JPEG nor PNG, an
// unsupported pixel format, or more than kMostImageBytes; DataLoss: damaged or truncated; ResourceExhausted. Errors do
// not name the file. Local; uses one thread. Silences FFmpeg's log in this process.
absl::StatusOr<Image> DecodeImage(absl::string_view bytes);

// The same for a file, whose path errors begin with. InvalidArgument also: no regular file; else the system's error.
absl::StatusOr<Image> ReadImage(const std::string& path);

}  // namespace plait::data

#endif  // PLAIT_DATA_IMAGES_DECODE_H_
