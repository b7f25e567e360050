// Gzip data in memory (RFC 1952), unpacked through zlib.
//
//   if (IsGzip(bytes)) {
//     PLAIT_ASSIGN_OR_RETURN(bytes, Gunzip(bytes, expected_bytes + 1));   // + 1 to detect excess data
//   }
#ifndef PLAIT_DATA_IDX_GZIP_H_
#define PLAIT_DATA_IDX_GZIP_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plait::data {

// Whether the bytes begin with gzip's magic number (1f 8b).
bool IsGzip(absl::string_view bytes);

// Returns the first `at_most` decompressed bytes, or all if there are fewer; only then are all checksums verified.
// Memory is proportional to the result, not to at_most. Concatenated members are joined. DataLoss, in a message
// without a file name: truncated, damaged, or trailing data.
absl::StatusOr<std::string> Gunzip(absl::string_view gzip, std::size_t at_most);

}  // namespace plait::data

#endif  // PLAIT_DATA_IDX_GZIP_H_
