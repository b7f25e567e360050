// The bytes of an HDF5 file, kept in memory while HDF5 makes it; the caller writes them to the disk.
//
//   FileImage image;
//   PLAIT_ASSIGN_OR_RETURN(File file, File::Create("a.h5", image));    // the name is for messages only
//   ...
//   PLAIT_RETURN_IF_ERROR(file.Close());
//   image.ForEachPart([&](std::int64_t offset, absl::Span<const char> bytes) { pwrite ... });
//
// For files whose disk may be full: HDF5 1.10 does not survive every write that fails (it crashes when it
// closes the file). Only what HDF5 writes takes memory: arrays whose elements are never written, or written
// later by somebody else at H5Dget_offset(), take none, and are no part.
#ifndef PLAIT_DATA_HDF5_FILE_IMAGE_H_
#define PLAIT_DATA_HDF5_FILE_IMAGE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "absl/types/span.h"
#include "data/hdf5/handle.h"

namespace plait::data {

// Not movable: an open file points to it, which it must outlive.
class FileImage {
 public:
  FileImage() = default;
  FileImage(const FileImage&) = delete;
  FileImage& operator=(const FileImage&) = delete;

  // Of the file, once HDF5 has closed it; with the room of arrays never written.
  std::int64_t size_bytes() const { return size_bytes_; }
  // The parts that HDF5 wrote, in ascending order; between them the file has zeros. Until `part` returns
  // false.
  void ForEachPart(const std::function<bool(std::int64_t offset, absl::Span<const char> bytes)>& part) const;

  // For HDF5's driver: it reads what was never written as zeros.
  void Read(std::int64_t offset, absl::Span<char> to) const;
  void Write(std::int64_t offset, absl::Span<const char> from);
  void Resize(std::int64_t bytes) { size_bytes_ = bytes; }

 private:
  std::map<std::int64_t, std::vector<char>> pages_;  // by number; those that were touched
  std::int64_t size_bytes_ = 0;
};

// Lets a file that is made with access list `list` live in `image`.
bool UseImage(const Handle& list, FileImage& image);

}  // namespace plait::data

#endif  // PLAIT_DATA_HDF5_FILE_IMAGE_H_
