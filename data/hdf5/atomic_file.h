// Atomic file writes: a file appears complete or not at all.
//
//   absl::Status saved = WriteAtomically("model.h5", bytes, [&](const std::string& partial) {
//     return Fill(partial);        // writes and closes the file named `partial`
//   });
//
// The writer fills a temporary file beside the target, which is flushed to disk (fsync) and renamed over the
// target. On an error, or if the process is killed, the target stays as it was. Temporary files that killed
// processes on this host left behind are removed by the next write to the same target.
#ifndef PLAIT_DATA_HDF5_ATOMIC_FILE_H_
#define PLAIT_DATA_HDF5_ATOMIC_FILE_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/path.h"

namespace plait::data {

// ResourceExhausted, before anything is written, if the disk has less than `expected_bytes` (0: unknown) free;
// PermissionDenied if the directory is not writable, NotFound if it does not exist; InvalidArgument if the target is a
// device or a pipe; else the error of `write`, prefixed with the path. The target is FileAt(path); a file that it
// replaces hands on its mode. `partial` is there and empty. Local; one writer per target at a time.
absl::Status WriteAtomically(const std::string& path, std::int64_t expected_bytes,
                             const std::function<absl::Status(const std::string& partial)>& write);

// The same for contents that are in memory.
absl::Status WriteWholeFile(const std::string& path, absl::string_view contents);

// A hidden name beside `path`, with host and process: for what takes the name `path` by a rename once it is complete. Files
// and folders under such names that killed processes on this host left behind are removed.
std::string PartialBeside(const std::string& path);

// `path` itself, or where it leads if it is a symbolic link; no file need be there. A link if the links never end.
std::string FileAt(const std::string& path);

// The directory part of a path, "." if it has none.
std::string FolderOf(const std::string& path);

using base::MakeFolders;

// Returns the contents of the file. DataLoss if it has more than `at_most` bytes; else the system's error.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path,
                                          std::int64_t at_most = std::numeric_limits<std::int64_t>::max());

}  // namespace plait::data

#endif  // PLAIT_DATA_HDF5_ATOMIC_FILE_H_
