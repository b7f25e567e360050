// zlib streams (RFC 1950) in memory.
#ifndef PLAIT_DATA_MATLAB_INFLATE_H_
#define PLAIT_DATA_MATLAB_INFLATE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plait::data::matlab {

// Decompresses `data`. DataLoss if it is damaged or truncated, or its checksum differs. Memory is proportional to the
// decompressed size, which is not limited.
absl::StatusOr<std::string> Inflate(absl::string_view data);

}  // namespace plait::data::matlab

#endif  // PLAIT_DATA_MATLAB_INFLATE_H_
