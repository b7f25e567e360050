// Checks a path before it is opened.
#ifndef PLAIT_DATA_IMAGES_REGULAR_FILE_H_
#define PLAIT_DATA_IMAGES_REGULAR_FILE_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"

namespace plait::data {

// InvalidArgument, with the path: a folder, a pipe or a device, where a reader would wait or never come to an end; or a
// file of more than `at_most` bytes. Follows links. OK if there is no such file: its reader says why. Local.
absl::Status CheckRegularFile(const std::string& path,
                              std::int64_t at_most = std::numeric_limits<std::int64_t>::max());

}  // namespace plait::data

#endif  // PLAIT_DATA_IMAGES_REGULAR_FILE_H_
