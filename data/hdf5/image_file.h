// A FileImage as a file on the disk: written by our own calls, whose errors are told, where HDF5
// would not survive them.
//
//   FileImage image;
//   ...                                                     // HDF5 makes a file in it and closes it
//   PLAIT_RETURN_IF_ERROR(WriteAtomically(path, image.size_bytes(), [&](const std::string& partial) {
//     return WriteImage(image, partial);
//   }));
//
// Errors are one line that begins with the path. Local.
#ifndef PLAIT_DATA_HDF5_IMAGE_FILE_H_
#define PLAIT_DATA_HDF5_IMAGE_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "data/hdf5/file_image.h"

namespace plait::data {

// A new file in place of what was there. Its room is taken first, where the file system can do that, so that
// a full disk is known before anything is written: ResourceExhausted, also for a quota or a limit on the size
// of files.
absl::Status WriteImage(const FileImage& image, const std::string& path);

}  // namespace plait::data

#endif  // PLAIT_DATA_HDF5_IMAGE_FILE_H_
