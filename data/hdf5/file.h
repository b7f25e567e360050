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
// Shapes are checked against the size of the file before memory is allocated. Soft and external links are ignored,
// as if they did not exist.
//
// Errors are one line: file, object, cause ("a.h5: truncated file: eof = 96, ..."); HDF5's own error stack
// is never printed. NotFound: no such file, array or attribute; PermissionDenied; DataLoss: not an HDF5
// file, or a damaged one; InvalidArgument: shape or type other than asked; ResourceExhausted: disk full;
// Unavailable: other input/output errors. Everything is local; for parallel reads every rank opens the file
// read-only and reads its own rows. Debian's HDF5 is not thread-safe: use it from one thread at a time.
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

// An open file. Movable. The destructor ignores errors, so call Close() after writing.
class File {
 public:
  enum class Mode { kRead, kReadWrite };

  // Creates a file, truncating an existing one. Creation order of links and attributes is tracked, as netCDF-4
  // requires. For atomic writes use WriteAtomically (atomic_file.h).
  static absl::StatusOr<File> Create(const std::string& path);
  // The same in memory; `path` appears in messages only. `image` must outlive the file.
  static absl::StatusOr<File> Create(const std::string& path, FileImage& image);
  static absl::StatusOr<File> Open(const std::string& path, Mode mode = Mode::kRead);
  // For reading and writing through `image` (FileImage::On(path)), which must outlive the file.
  static absl::StatusOr<File> Open(const std::string& path, FileImage& image);
  // For reading untrusted files: first walks the file in a child process (trial.h), so that a file on which HDF5
  // crashes or does not terminate is DataLoss. Takes milliseconds, more for large chunked arrays.
  static absl::StatusOr<File> OpenForeign(const std::string& path);

  // Flushes and closes. May be called twice.
  absl::Status Close();

  const std::string& path() const { return path_; }
  hid_t id() const { return handle_.id(); }

  // Names of the arrays and groups directly in `group`, in creation order if the file tracks it, else by name.
  absl::StatusOr<std::vector<std::string>> Names(const std::string& group) const;
  bool Has(const std::string& object) const;

 private:
  static absl::StatusOr<File> CreateWith(const std::string& path, const Handle& access);
  static absl::StatusOr<File> OpenWith(const std::string& path, unsigned flags, const Handle& access);
  File(std::string path, Handle handle) : path_(std::move(path)), handle_(std::move(handle)) {}

  std::string path_;
  Handle handle_;
};

// T below is one of float, double, std::int64_t, std::uint64_t, std::int32_t, std::uint32_t, std::int16_t,
// std::uint16_t, std::uint8_t.

// The shape of array `name`; empty for a scalar.
absl::StatusOr<std::vector<std::int64_t>> ArrayShape(const File& file, const std::string& name);

// DataLoss if a block of this shape of array `name` is larger than the file can hold, even compressed: for callers that
// allocate memory before they read.
absl::Status CheckRoom(const File& file, const std::string& name, const std::vector<std::int64_t>& extent);

// Creates an array, row-major, and missing groups on its path. InvalidArgument unless values.size() is the product of
// `shape`.
template <typename T>
absl::Status WriteArray(File& file, const std::string& name, absl::Span<const T> values,
                        const std::vector<std::int64_t>& shape);

// Reads the whole array. HDF5 converts between number types of the same class, such as float to double;
// InvalidArgument for integers read as floating-point numbers or the reverse.
template <typename T>
absl::StatusOr<std::vector<T>> ReadArray(const File& file, const std::string& name);

// Reads rows [first, first + count) along the first dimension into `out`. InvalidArgument if they are not inside the
// array or do not fill `out`.
template <typename T>
absl::Status ReadRowsInto(const File& file, const std::string& name, std::int64_t first, std::int64_t count,
                          absl::Span<T> out);
template <typename T>
absl::StatusOr<std::vector<T>> ReadRows(const File& file, const std::string& name, std::int64_t first,
                                        std::int64_t count);

// Reads a block given by its corner and extent in every dimension. InvalidArgument if it is not inside the array.
template <typename T>
absl::StatusOr<std::vector<T>> ReadBlock(const File& file, const std::string& name,
                                         const std::vector<std::int64_t>& offset,
                                         const std::vector<std::int64_t>& extent);

// Creates a chunked array of shape (rows, row_shape...) that can grow along its first dimension; elements never
// written read as `fill`. Its group must exist.
template <typename T>
absl::Status CreateGrowing(File& file, const std::string& name, std::int64_t rows, std::int64_t chunk_rows,
                           T fill, const std::vector<std::int64_t>& row_shape = {});
// Sets the number of rows, up or down.
absl::Status Resize(File& file, const std::string& name, std::int64_t rows);
// Writes whole rows starting at `first`. InvalidArgument unless the rows exist (Resize) and `values` is whole rows.
template <typename T>
absl::Status WriteRows(File& file, const std::string& name, std::int64_t first, absl::Span<const T> values);

// Scalar attributes of the array or group named `object` ("/": the root). Set replaces an existing one. Text is
// stored as a UTF-8 string of fixed length; TextAttribute reads fixed-length strings only. InvalidArgument for
// another type.
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
