// HDF5 files, arrays and attributes with absl::Status errors: a thin layer over the C API (1.10).
//
//   PLAIT_ASSIGN_OR_RETURN(File file, File::Create("run.h5"));
//   PLAIT_RETURN_IF_ERROR(WriteArray<float>(file, "/train/x", values, {samples, steps, channels}));
//   PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "source", "UCI HAR"));
//   PLAIT_RETURN_IF_ERROR(file.Close());
//
//   PLAIT_ASSIGN_OR_RETURN(File file, File::Open("run.h5"));
//   PLAIT_ASSIGN_OR_RETURN(std::vector<float> some, ReadRows<float>(file, "/train/x", first_row, row_count));
//
// A shape is held against the file's size before memory is taken; links to other places are as if they were not there.
//
// Errors are one line: file, object, cause ("a.h5: truncated file: eof = 96, ..."); HDF5's own error stack
// is never printed. NotFound: no such file, array or attribute; PermissionDenied; DataLoss: not an HDF5
// file, or a damaged one; InvalidArgument: shape or type other than asked; ResourceExhausted: disk full;
// Unavailable: other input/output errors. Everything is local; for parallel reads every rank opens the file
// read-only and reads its own rows. HDF5 is not thread-safe as Debian builds it: one thread at a time in a
// process.
#ifndef PLAIT_DATA_HDF5_FILE_H_
#define PLAIT_DATA_HDF5_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/hdf5/file_image.h"
#include "data/hdf5/handle.h"

namespace plait::data {

// An open file. Movable; the destructor closes without telling of errors, so call Close() after writing.
class File {
 public:
  enum class Mode { kRead, kReadWrite };

  // A new file in place of what was there. Links and attributes keep their order of creation, as netCDF-4
  // asks. To write a file that must appear whole or not at all, use WriteAtomically (atomic_file.h).
  static absl::StatusOr<File> Create(const std::string& path);
  // The same in memory: `path` is for messages alone. `image` outlives the file.
  static absl::StatusOr<File> Create(const std::string& path, FileImage& image);
  static absl::StatusOr<File> Open(const std::string& path, Mode mode = Mode::kRead);
  // For reading and writing by way of `image`, FileImage::On(path), which outlives this.
  static absl::StatusOr<File> Open(const std::string& path, FileImage& image);
  // For reading what a stranger may have written: looked at in a process of its own first (trial.h), so that one over
  // which HDF5 crashes, or never ends, is DataLoss. Takes milliseconds.
  static absl::StatusOr<File> OpenForeign(const std::string& path);

  // Writes out what is buffered, then closes. Safe to call twice.
  absl::Status Close();

  const std::string& path() const { return path_; }
  hid_t id() const { return handle_.id(); }

  // Names of the arrays and groups directly in `group`, in order of creation where the file keeps it.
  absl::StatusOr<std::vector<std::string>> Names(const std::string& group) const;
  bool Has(const std::string& object) const;

 private:
  static absl::StatusOr<File> CreateWith(const std::string& path, const Handle& access);
  static absl::StatusOr<File> OpenWith(const std::string& path, unsigned flags, const Handle& access);
  File(std::string path, Handle handle) : path_(std::move(path)), handle_(std::move(handle)) {}

  std::string path_;
  Handle handle_;
};

// T below is one of float, double, std::int64_t, std::int32_t, std::uint32_t, std::int16_t, std::uint16_t,
// std::uint8_t.

// The shape of array `name`; empty for a scalar.
absl::StatusOr<std::vector<std::int64_t>> ArrayShape(const File& file, const std::string& name);

// DataLoss where a block of such a shape is more than the file can hold, also packed: for who takes memory for parts of
// array `name` himself.
absl::Status CheckRoom(const File& file, const std::string& name, const std::vector<std::int64_t>& extent);

// A new array, row-major; missing groups on the way are made. values.size() must be the product of `shape`.
template <typename T>
absl::Status WriteArray(File& file, const std::string& name, absl::Span<const T> values,
                        const std::vector<std::int64_t>& shape);

// The whole array. HDF5 converts between number types of the same class, float to double for example;
// reading integers as floating-point numbers or the reverse is InvalidArgument.
template <typename T>
absl::StatusOr<std::vector<T>> ReadArray(const File& file, const std::string& name);

// Rows [first, first + count) along the first dimension into `out`, whose size must fit.
template <typename T>
absl::Status ReadRowsInto(const File& file, const std::string& name, std::int64_t first, std::int64_t count,
                          absl::Span<T> out);
template <typename T>
absl::StatusOr<std::vector<T>> ReadRows(const File& file, const std::string& name, std::int64_t first,
                                        std::int64_t count);

// A block given by its corner and extent in every dimension.
template <typename T>
absl::StatusOr<std::vector<T>> ReadBlock(const File& file, const std::string& name,
                                         const std::vector<std::int64_t>& offset,
                                         const std::vector<std::int64_t>& extent);

// An array of `rows` rows that can grow, in chunks; elements never written read as `fill`. A row is a
// number, or has `row_shape`.
template <typename T>
absl::Status CreateGrowing(File& file, const std::string& name, std::int64_t rows, std::int64_t chunk_rows,
                           T fill, const std::vector<std::int64_t>& row_shape = {});
// Makes it `rows` long (shorter is allowed).
absl::Status Resize(File& file, const std::string& name, std::int64_t rows);
// Writes whole rows from `first` on; they must exist.
template <typename T>
absl::Status WriteRows(File& file, const std::string& name, std::int64_t first, absl::Span<const T> values);

// Attributes of the object (array, group, or "/") named `object`; an existing one is replaced.
absl::Status SetAttribute(File& file, const std::string& object, const std::string& name,
                          const std::string& text);
absl::Status SetAttribute(File& file, const std::string& object, const std::string& name, std::int64_t value);
bool HasAttribute(const File& file, const std::string& object, const std::string& name);
absl::StatusOr<std::string> TextAttribute(const File& file, const std::string& object,
                                          const std::string& name);
absl::StatusOr<std::int64_t> IntAttribute(const File& file, const std::string& object,
                                          const std::string& name);

}  // namespace plait::data

#endif  // PLAIT_DATA_HDF5_FILE_H_
