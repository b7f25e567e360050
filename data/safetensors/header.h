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

// Parses and validates a header: a JSON object in UTF-8 that begins with '{' and is followed by white space only;
// unique names and keys; known element types; end - begin equal to the size by shape and type; tensors contiguous
// from 0 to `data_bytes`, without holes or overlaps. `json` may be hostile: memory is proportional to its length,
// nesting takes none. DataLoss, one line: what, in which tensor, what was expected. (Stricter than the format:
// unknown keys of a tensor are an error.)
absl::StatusOr<Header> ParseHeader(absl::string_view json, std::int64_t data_bytes);

// Returns the JSON of a header, padded with spaces so that 8 + size() is a multiple of 8, which aligns the tensors'
// bytes. Metadata keys are sorted, entries keep their order. InvalidArgument: a name, key or text that is not
// UTF-8, a duplicate name or "__metadata__", more than kMaxHeaderBytes.
absl::StatusOr<std::string> HeaderText(const Header& header);

}  // namespace plait::data::safetensors

#endif  // PLAIT_DATA_SAFETENSORS_HEADER_H_
