// Files that appear whole or not at all.
//
//   absl::Status saved = WriteAtomically("model.h5", bytes, [&](const std::string& partial) {
//     return Fill(partial);        // writes and closes the file named `partial`
//   });
//
// The writer fills a file beside the target; only when that went well, is it flushed to the disk (fsync) and
// renamed over the target. On any error, or when the process is killed, the target stays as it was. What a
// killed process of this host left beside the target is removed by the next write to it.
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

// `expected_bytes` (0: unknown) lets a disk that is too small be reported before anything is written:
// ResourceExhausted, naming the folder, what is needed and what is free. PermissionDenied for an unwritable
// folder, NotFound for a missing one; else the writer's own error. Local; one writer per target at a time.
absl::Status WriteAtomically(const std::string& path, std::int64_t expected_bytes,
                             const std::function<absl::Status(const std::string& partial)>& write);

// The same for contents that are in memory.
absl::Status WriteWholeFile(const std::string& path, absl::string_view contents);

// The folder part of a path: "." where there is none.
std::string FolderOf(const std::string& path);

using base::MakeFolders;

// The whole file as bytes. DataLoss where it has more than `at_most`.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path,
                                          std::int64_t at_most = std::numeric_limits<std::int64_t>::max());

}  // namespace plait::data

#endif  // PLAIT_DATA_HDF5_ATOMIC_FILE_H_
