// The bytes of an HDF5 file, kept in memory while HDF5 makes it; the caller writes them to the disk.
//
//   FileImage image;
//   PLAIT_ASSIGN_OR_RETURN(File file, File::Create("a.h5", image));    // the name is for messages only
//   ...
//   PLAIT_RETURN_IF_ERROR(file.Close());
//   image.ForEachPart([&](std::int64_t offset, absl::Span<const char> bytes) { pwrite ... });
//
// Or a file that is there and is changed on the disk, with the writes that fail kept in memory, so that HDF5 can close it:
//
//   PLAIT_ASSIGN_OR_RETURN(FileImage image, FileImage::On("a.h5"));
//   PLAIT_ASSIGN_OR_RETURN(File file, File::Open("a.h5", image));
//   ...
//   PLAIT_RETURN_IF_ERROR(file.Close());
//   PLAIT_RETURN_IF_ERROR(image.Finish());
//
// For files whose disk may be full: HDF5 1.10 does not survive every write that fails (it crashes when it
// closes the file). Only what HDF5 writes takes memory: arrays whose elements are never written, or written
// later by somebody else at H5Dget_offset(), take none, and are no part.
#ifndef PLAIT_DATA_HDF5_FILE_IMAGE_H_
#define PLAIT_DATA_HDF5_FILE_IMAGE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/file_descriptor.h"
#include "data/hdf5/handle.h"

namespace plait::data {

// An open file points to it: it outlives the file and is not moved meanwhile.
class FileImage {
 public:
  FileImage() = default;
  static absl::StatusOr<FileImage> On(const std::string& path);

  // Of the file, once HDF5 has closed it; with the room of arrays never written.
  std::int64_t size_bytes() const { return size_bytes_; }
  // The parts that HDF5 wrote, in ascending order; between them the file has zeros. Until `part` returns
  // false. Of a file on the disk: those that could not be written there.
  void ForEachPart(const std::function<bool(std::int64_t offset, absl::Span<const char> bytes)>& part) const;

  // Of a file on the disk, once HDF5 has closed it: cuts it to its size. The error of the first write that failed.
  absl::Status Finish() const;

  // For HDF5's driver: it reads what was never written as zeros. False where the disk cannot be read.
  bool Read(std::int64_t offset, absl::Span<char> to) const;
  bool Write(std::int64_t offset, absl::Span<const char> from);
  void Resize(std::int64_t bytes) { size_bytes_ = bytes; }

 private:
  bool ReadDisk(std::int64_t offset, absl::Span<char> to) const;

  std::optional<base::FileDescriptor> disk_;
  std::int64_t size_on_disk_ = 0;
  absl::Status written_;
  std::map<std::int64_t, std::vector<char>> pages_;  // by number; those that were touched
  std::int64_t size_bytes_ = 0;
};

// FileAccess() for a file that lives in `image`.
Handle ImageAccess(FileImage& image);

}  // namespace plait::data

#endif  // PLAIT_DATA_HDF5_FILE_IMAGE_H_
