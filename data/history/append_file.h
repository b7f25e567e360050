// A file that grows by complete records, and moving the files of earlier runs aside.
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
  // A new file. AlreadyExists if there is one, unless it is to be moved aside.
  static absl::StatusOr<AppendFile> Create(const std::string& path, bool move_old_aside);
  // Continues at the end of the file, which is created if it is missing.
  static absl::StatusOr<AppendFile> OpenAtEnd(const std::string& path);

  // Each record is one write. ResourceExhausted (disk full) and others; the file then ends with the previous
  // record.
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

// Renames an existing file to FILE.1, FILE.2, ..., the first that is free.
absl::Status MoveAside(const std::string& path);

}  // namespace plait::data

#endif  // PLAIT_DATA_HISTORY_APPEND_FILE_H_
