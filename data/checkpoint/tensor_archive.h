// Named arrays and texts in one HDF5 file: what a checkpoint is made of. No LibTorch: bytes, type and shape.
//
//   const std::vector<TensorView> tensors = {{"0.weight", DType::kFloat32, {100, 9}, weight.data_ptr()},
//   ...}; PLAIT_RETURN_IF_ERROR(WriteTensorArchive("last.h5", tensors, {{"config", json}, {"sampler",
//   state}}));
//
//   PLAIT_ASSIGN_OR_RETURN(const TensorArchive archive, TensorArchive::Open("last.h5"));
//   PLAIT_RETURN_IF_ERROR(archive.ReadInto("0.weight", DType::kFloat32, {100, 9}, weight.data_ptr()));
//   PLAIT_ASSIGN_OR_RETURN(const std::string json, archive.Text("config"));
//
// File: /tensors/NAME, an HDF5 array of the tensor's type and shape that any HDF5 reader shows (bfloat16 and
// float16 as int16 bit patterns, bool as uint8), with attributes dtype and crc32 (zlib's, of the row-major
// bytes); /texts/NAME, uint8, likewise; root attributes format = "plait tensors", format_version = 1 and
// tensor_count. Structures of the file itself have HDF5's own checksums.
//
// Errors are one line and name file and tensor. Writing: as WriteAtomically; nothing is overwritten on
// failure. Reading: NotFound (no file, no such tensor), DataLoss (not HDF5, cut short, foreign, another
// format version, a checksum that does not match), InvalidArgument (another type or shape than asked). Local.
#ifndef PLAIT_DATA_CHECKPOINT_TENSOR_ARCHIVE_H_
#define PLAIT_DATA_CHECKPOINT_TENSOR_ARCHIVE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/hdf5/file.h"

namespace plait::data {

enum class DType { kFloat32, kFloat64, kBFloat16, kFloat16, kInt64, kInt32, kUint8, kBool };

// "float32", "bfloat16", ...
absl::string_view NameOf(DType dtype);
std::int64_t ElementBytes(DType dtype);

// A tensor that somebody else owns. Row-major and contiguous; an empty shape is a scalar.
struct TensorView {
  std::string name;  // no '/', not empty
  DType dtype;
  std::vector<std::int64_t> shape;
  const void* data;
};

struct TensorInfo {
  DType dtype;
  std::vector<std::int64_t> shape;
};

// Names must differ and be usable: InvalidArgument otherwise.
absl::Status WriteTensorArchive(const std::string& path, absl::Span<const TensorView> tensors,
                                const std::map<std::string, std::string>& texts);

class TensorArchive {
 public:
  static absl::StatusOr<TensorArchive> Open(const std::string& path);

  // In the order in which they were written.
  const std::vector<std::string>& names() const { return names_; }
  absl::StatusOr<TensorInfo> Info(const std::string& name) const;

  // Into `data`, which has room for the whole tensor; untouched where type or shape differ. After DataLoss it
  // may hold damaged numbers.
  absl::Status ReadInto(const std::string& name, DType dtype, const std::vector<std::int64_t>& shape,
                        void* data) const;

  bool HasText(const std::string& name) const;
  absl::StatusOr<std::string> Text(const std::string& name) const;

  // Reads every tensor and text and compares checksums, without keeping them.
  absl::Status Verify() const;

  const std::string& path() const { return file_.path(); }

 private:
  explicit TensorArchive(File file) : file_(std::move(file)) {}

  File file_;
  std::vector<std::string> names_;
};

}  // namespace plait::data

#endif  // PLAIT_DATA_CHECKPOINT_TENSOR_ARCHIVE_H_
