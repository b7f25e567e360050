// A file that grows by whole records: each is written at once, and taken back where it does not fit.
#ifndef PLAIT_DATA_HISTORY_APPEND_FILE_H_
#define PLAIT_DATA_HISTORY_APPEND_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plait::data {

class AppendFile {
 public:
  // A new file. AlreadyExists where there is one, unless it is to be moved aside (set_aside.h).
  static absl::StatusOr<AppendFile> Create(const std::string& path, bool move_old_aside);
  // Goes on at the end of a file that is there.
  static absl::StatusOr<AppendFile> OpenAtEnd(const std::string& path);
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;
  ~AppendFile();

  // ResourceExhausted (disk full) and others; the file then ends with the record before.
  absl::Status Write(absl::string_view record);
  const std::string& path() const { return path_; }
  std::int64_t size() const { return size_; }

 private:
  AppendFile(std::string path, int descriptor, std::int64_t size);

  std::string path_;
  int descriptor_;
  std::int64_t size_;
};

}  // namespace plait::data

#endif  // PLAIT_DATA_HISTORY_APPEND_FILE_H_
