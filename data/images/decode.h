// Images from the bytes of JPEG and PNG files, by FFmpeg's libavcodec.
//
//   PLAIT_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(path));
//   absl::StatusOr<Image> image = DecodeImage(bytes);      // errors do not name the file
#ifndef PLAIT_DATA_IMAGES_DECODE_H_
#define PLAIT_DATA_IMAGES_DECODE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "data/images/image_source.h"

namespace plait::data {

// Red, green, blue, whatever the file has; transparency is dropped. InvalidArgument: neither JPEG nor PNG;
// DataLoss: damaged or cut short. Local; on one thread. Silences FFmpeg's own messages in this process.
absl::StatusOr<Image> DecodeImage(absl::string_view bytes);

}  // namespace plait::data

#endif  // PLAIT_DATA_IMAGES_DECODE_H_
