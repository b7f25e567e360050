// Cache of a network's features for the frames of one video.
//
//   absl::StatusOr<FrameFeatures> kept = ReadFeatures(path, made_from);
//   if (!kept.ok()) ...                                     // compute
//   PLAIT_RETURN_IF_ERROR(WriteFeatures(path, features, made_from));
//
//   /features       float32 (frame, feature)     attribute crc32: of the bytes, zlib's
//   /frame, /feature   int64: 0, 1, ...; dimensions as netCDF-4 has them, for xarray
//   root attributes: format = "plait frame features", format_version = 1, made_from (text)
//
// `made_from` identifies everything that the features depend on: video, frames, network, weights. Local.
#ifndef PLAIT_DATA_VIDEO_FEATURE_FILE_H_
#define PLAIT_DATA_VIDEO_FEATURE_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace plait::data {

struct FrameFeatures {
  std::int64_t frames = 0, features = 0;
  std::vector<float> values;  // (frames, features)
};

// Atomic; creates the directory if needed. Errors of WriteAtomically.
absl::Status WriteFeatures(const std::string& path, const FrameFeatures& features,
                           const std::string& made_from);

// NotFound: no such file. FailedPrecondition: another `made_from`. DataLoss: damaged, or another format.
absl::StatusOr<FrameFeatures> ReadFeatures(const std::string& path, const std::string& made_from);

}  // namespace plait::data

#endif  // PLAIT_DATA_VIDEO_FEATURE_FILE_H_
