// zlib streams (RFC 1950) in memory.
#ifndef PLAIT_DATA_MATLAB_INFLATE_H_
#define PLAIT_DATA_MATLAB_INFLATE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plait::data::matlab {

// Everything that is packed in `data`. DataLoss where it is damaged, cut short, or its checksum differs. Memory grows
// with what is unpacked.
absl::StatusOr<std::string> Inflate(absl::string_view data);

}  // namespace plait::data::matlab

#endif  // PLAIT_DATA_MATLAB_INFLATE_H_
