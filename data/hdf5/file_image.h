// The bytes of an HDF5 file, kept in memory while HDF5 builds it; the caller writes them to disk.
//
//   FileImage image;
//   PLAIT_ASSIGN_OR_RETURN(File file, File::Create("a.h5", image));    // the name is for messages only
//   ...
//   PLAIT_RETURN_IF_ERROR(file.Close());
//   image.ForEachPart([&](std::int64_t offset, absl::Span<const char> bytes) { pwrite ...; return true; });
//
// Or an existing file, modified in place on disk; after the first failed write, writes are kept in memory, so that
// HDF5 can close the file:
//
//   PLAIT_ASSIGN_OR_RETURN(FileImage image, FileImage::On("a.h5"));
//   PLAIT_ASSIGN_OR_RETURN(File file, File::Open("a.h5", image));
//   ...
//   PLAIT_RETURN_IF_ERROR(file.Close());
//   PLAIT_RETURN_IF_ERROR(image.Finish());
//
// For disks that may be full: HDF5 1.10 can crash on closing a file after a failed write. Only what HDF5 writes takes
// memory: arrays whose elements are never written, or are written later by the caller at H5Dget_offset(), take none
// and are not part of ForEachPart.
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

// Must outlive the open file, which points to it, and not be moved meanwhile.
class FileImage {
 public:
  FileImage() = default;
  static absl::StatusOr<FileImage> On(const std::string& path);

  // Size of the file once HDF5 has closed it, including arrays never written.
  std::int64_t size_bytes() const { return size_bytes_; }
  // Calls `part` for the parts that HDF5 wrote, in ascending order, until it returns false; between them the file
  // has zeros. For a file on disk: the parts that could not be written there.
  void ForEachPart(const std::function<bool(std::int64_t offset, absl::Span<const char> bytes)>& part) const;

  // For a file on disk, once HDF5 has closed it: truncates it to its size. Returns the error of the first failed write.
  absl::Status Finish() const;

  // For HDF5's driver. Bytes never written read as zeros. False if the disk cannot be read.
  bool Read(std::int64_t offset, absl::Span<char> to) const;
  bool Write(std::int64_t offset, absl::Span<const char> from);
  void Resize(std::int64_t bytes) { size_bytes_ = bytes; }

 private:
  bool ReadDisk(std::int64_t offset, absl::Span<char> to) const;

  std::optional<base::FileDescriptor> disk_;
  std::int64_t size_on_disk_ = 0;
  absl::Status written_;
  std::map<std::int64_t, std::vector<char>> pages_;  // by page number; those written to
  std::int64_t size_bytes_ = 0;
};

// FileAccess() for a file in `image`.
Handle ImageAccess(FileImage& image);

}  // namespace plait::data

#endif  // PLAIT_DATA_HDF5_FILE_IMAGE_H_
