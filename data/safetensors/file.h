// Reads a safetensors file without copying it: tensors are spans into the mapped file.
//
//   PLAIT_ASSIGN_OR_RETURN(const File file, File::Open("model.safetensors"));
//   for (const Header::Entry& entry : file.entries()) ...                       // names, types, shapes
//   PLAIT_ASSIGN_OR_RETURN(const TensorView wte, file.Find("wte.weight"));      // points into the mapping
//   PLAIT_RETURN_IF_ERROR(file.ReadInto("wte.weight", {DType::kF32, {65, 128}}, wte_data));
//
// Open() checks the whole header (header.h); the tensors' bytes are read from disk when they are accessed. The
// format has no checksum: a flipped bit in a tensor is not detected. Tensors in files by other programs may not be
// aligned to their elements: copy them with ReadInto, or check IsAligned().
//
// The file must not be truncated while it is open (access past its end raises SIGBUS); replacing it by rename, as
// WriteFile does, is safe. Local; thread-safe for reading.
#ifndef PLAIT_DATA_SAFETENSORS_FILE_H_
#define PLAIT_DATA_SAFETENSORS_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "data/mapped_file.h"
#include "data/safetensors/header.h"
#include "data/safetensors/tensor.h"

namespace plait::data::safetensors {

class File {
 public:
  // NotFound, PermissionDenied: as the system says. DataLoss: not a safetensors file, or a damaged one. One
  // line, "PATH: what, expected what".
  static absl::StatusOr<File> Open(const std::string& path);

  File(File&&) = default;
  File& operator=(File&&) = default;

  const std::string& path() const { return path_; }
  const Metadata& metadata() const { return header_.metadata; }
  // In the order of their bytes.
  const std::vector<Header::Entry>& entries() const { return header_.entries; }
  std::int64_t data_bytes() const { return header_.entries.empty() ? 0 : header_.entries.back().end; }

  bool Has(absl::string_view name) const { return places_.contains(name); }
  // The view's data are valid as long as this File, or the one that it is moved to. NotFound: no such tensor.
  absl::StatusOr<TensorView> Find(absl::string_view name) const;
  // Copies the tensor to `data`, which has room for `expected`; unchanged on error. NotFound: no such tensor;
  // InvalidArgument: another type or shape.
  absl::Status ReadInto(absl::string_view name, const TensorInfo& expected, void* data) const;

 private:
  File(std::string path, MappedFile mapping, Header header, absl::string_view data);

  std::string path_;
  MappedFile mapping_;
  Header header_;
  absl::string_view data_;  // in the mapping
  absl::flat_hash_map<std::string, std::size_t> places_;
};

// Whether the data are aligned to the size of their elements.
bool IsAligned(const TensorView& tensor);

}  // namespace plait::data::safetensors

#endif  // PLAIT_DATA_SAFETENSORS_FILE_H_
