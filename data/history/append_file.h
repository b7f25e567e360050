// A file that grows by complete records; and renaming the files of earlier runs.
#ifndef PLAIT_DATA_HISTORY_APPEND_FILE_H_
#define PLAIT_DATA_HISTORY_APPEND_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file_descriptor.h"

namespace plait::data {

class AppendFile {
 public:
  // Creates the file. If it exists: AlreadyExists, or with `move_old_aside` it is renamed (MoveAside).
  static absl::StatusOr<AppendFile> Create(const std::string& path, bool move_old_aside);
  // Appends to the file, which is created if it does not exist.
  static absl::StatusOr<AppendFile> OpenAtEnd(const std::string& path);

  // Writes one record, unbuffered. ResourceExhausted (disk full, quota, file size limit) or other errors, after which
  // the file ends with the previous record.
  absl::Status Write(absl::string_view record);
  absl::Status Clear();
  // See FileDescriptor.
  absl::Status Sync() const { return file_.Sync(); }
  absl::Status Lock() const { return file_.Lock(); }
  const std::string& path() const { return path_; }
  std::int64_t size() const { return size_; }

 private:
  AppendFile(std::string path, base::FileDescriptor file, std::int64_t size)
      : path_(std::move(path)), file_(std::move(file)), size_(size) {}

  std::string path_;
  base::FileDescriptor file_;
  std::int64_t size_;
};

// Renames an existing file or directory to PATH.1, PATH.2, ..., the first name that is free, and returns it. Empty if
// there is nothing at `path`.
absl::StatusOr<std::string> MoveAside(const std::string& path);

}  // namespace plait::data

#endif  // PLAIT_DATA_HISTORY_APPEND_FILE_H_
