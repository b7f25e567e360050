// The header of a safetensors file: JSON that says what the bytes after it are.
//
//   PLAIT_ASSIGN_OR_RETURN(const Header header, ParseHeader(json, bytes_after_it));
//   for (const Header::Entry& entry : header.entries) ...   // in the order of their bytes
//
// A file is a 64-bit little-endian number N, N bytes of header, then the tensors' bytes. The header is
// {"__metadata__": {"key": "text", ...},
//  "name": {"dtype": "F32", "shape": [3, 4], "data_offsets": [begin, end]}, ...}
// with offsets from the end of the header. Format: https://github.com/huggingface/safetensors ("Format").
#ifndef PLAIT_DATA_SAFETENSORS_HEADER_H_
#define PLAIT_DATA_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "data/safetensors/tensor.h"

namespace plait::data::safetensors {

// The format's bound: what a reader must be ready to parse.
inline constexpr std::int64_t kMaxHeaderBytes = 100'000'000;

using Metadata = std::map<std::string, std::string>;

struct Header {
  struct Entry {
    std::string name;
    TensorInfo info;
    std::int64_t begin = 0;  // [begin, end) in the bytes after the header
    std::int64_t end = 0;
  };
  Metadata metadata;
  std::vector<Entry> entries;  // by begin, then end
};

// Accepts what the format allows and no more: a JSON object in UTF-8 that begins with '{' and has spaces
// after it at most; every name and key once; known element types; end - begin as shape and type say; the
// tensors side by side from 0 to `data_bytes`, without holes and overlaps. The text is hostile until it has
// passed: memory is in proportion to its length, nesting costs none. DataLoss, one line: what, in which
// tensor, what was expected. (Beyond the format: a key that it does not know is an error, not skipped.)
absl::StatusOr<Header> ParseHeader(absl::string_view json, std::int64_t data_bytes);

// The JSON of a header, padded with spaces so that 8 + size() is a multiple of 8: the tensors' bytes begin
// aligned. Keys of metadata come sorted, entries as they are. InvalidArgument: a name, key or text that is
// not UTF-8, a name twice or "__metadata__", more than kMaxHeaderBytes.
absl::StatusOr<std::string> HeaderText(const Header& header);

}  // namespace plait::data::safetensors

#endif  // PLAIT_DATA_SAFETENSORS_HEADER_H_
