// Decodes JPEG and PNG files with FFmpeg's libavcodec.
//
//   PLAIT_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(path));
//   absl::StatusOr<Image> image = DecodeImage(bytes);      // errors do not name the file
#ifndef PLAIT_DATA_IMAGES_DECODE_H_
#define PLAIT_DATA_IMAGES_DECODE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "data/images/image_source.h"

namespace plait::data {

// Always returns 3 channels, RGB; alpha is dropped, 16 bits are rounded to 8. InvalidArgument: neither JPEG nor PNG, or
// an unsupported pixel format; DataLoss: damaged or truncated; ResourceExhausted. Local; uses one thread. Silences
// FFmpeg's log in this process.
absl::StatusOr<Image> DecodeImage(absl::string_view bytes);

}  // namespace plait::data

#endif  // PLAIT_DATA_IMAGES_DECODE_H_
