// Gzip data in memory (RFC 1952), unpacked through zlib.
//
//   if (IsGzip(bytes)) {
//     PLAIT_ASSIGN_OR_RETURN(bytes, Gunzip(bytes, expected_bytes + 1));   // one more shows that there are
//     more
//   }
#ifndef PLAIT_DATA_IDX_GZIP_H_
#define PLAIT_DATA_IDX_GZIP_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plait::data {

// Whether the bytes begin as gzip data do (1f 8b).
bool IsGzip(absl::string_view bytes);

// The first `at_most` unpacked bytes, or all where there are fewer; then also every checksum is compared.
// Memory grows with what is unpacked, not with at_most. Members in a row are joined. DataLoss, without a file
// name: cut short, damaged, or something else after the end.
absl::StatusOr<std::string> Gunzip(absl::string_view gzip, std::size_t at_most);

}  // namespace plait::data

#endif  // PLAIT_DATA_IDX_GZIP_H_
