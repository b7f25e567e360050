// Writes a FileImage to disk with POSIX calls, whose errors are returned, where HDF5 might crash.
//
//   FileImage image;
//   ...                                                     // HDF5 makes a file in it and closes it
//   PLAIT_RETURN_IF_ERROR(WriteAtomically(path, image.size_bytes(), [&](const std::string& partial) {
//     return WriteImage(image, partial);
//   }));
//
// Or a file too large for memory, which HDF5 writes to disk:
//
//   PLAIT_RETURN_IF_ERROR(WriteAtomically(path, bytes, [&](const std::string& partial) {
//     return WriteOnDisk(partial, [&](File& file) { ... return absl::OkStatus(); });
//   }));
//
// Errors are one line that begins with the path. Local.
#ifndef PLAIT_DATA_HDF5_IMAGE_FILE_H_
#define PLAIT_DATA_HDF5_IMAGE_FILE_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "data/hdf5/file.h"
#include "data/hdf5/file_image.h"

namespace plait::data {

// Creates the file, replacing an existing one. Reserves its space first if the file system can (fallocate), so that a
// full disk is detected before anything is written. ResourceExhausted: disk full, quota, or limit on file size.
absl::Status WriteImage(const FileImage& image, const std::string& path);

// Creates the file, replacing an existing one, calls `fill`, and closes it. After a failed write, what follows is kept in
// memory, and the write's error is returned.
absl::Status WriteOnDisk(const std::string& path, const std::function<absl::Status(File&)>& fill);

}  // namespace plait::data

#endif  // PLAIT_DATA_HDF5_IMAGE_FILE_H_
