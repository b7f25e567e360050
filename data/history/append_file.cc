#include "data/history/append_file.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plait::data {

namespace fs = std::filesystem;

absl::StatusOr<AppendFile> AppendFile::Create(const std::string& path, bool move_old_aside) {
  std::error_code ignored;
  if (move_old_aside) {
    PLAIT_RETURN_IF_ERROR(MoveAside(path));
  } else if (fs::exists(path, ignored)) {
    return absl::AlreadyExistsError(
        absl::StrCat(path, ": holds an earlier run: choose another name or remove the file"));
  }
  PLAIT_ASSIGN_OR_RETURN(base::FileDescriptor file,
                         base::FileDescriptor::Open(path, base::FileDescriptor::Mode::kCreate));
  return AppendFile(path, std::move(file), 0);
}

absl::StatusOr<AppendFile> AppendFile::OpenAtEnd(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(base::FileDescriptor file,
                         base::FileDescriptor::Open(path, base::FileDescriptor::Mode::kOpenOrCreate));
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t size, file.SizeBytes());
  return AppendFile(path, std::move(file), size);
}

absl::Status AppendFile::Write(absl::string_view record) {
  const auto bytes = static_cast<std::int64_t>(record.size());
  absl::Status written = file_.WriteAt(record.data(), bytes, size_);
  if (!written.ok()) {
    PLAIT_RETURN_IF_ERROR(file_.Truncate(size_));
    return written;
  }
  size_ += bytes;
  return absl::OkStatus();
}

absl::Status AppendFile::Clear() {
  size_ = 0;
  return file_.Truncate(0);
}

absl::StatusOr<std::string> MoveAside(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return std::string();
  int number = 1;
  while (fs::exists(absl::StrCat(path, ".", number), error)) ++number;
  std::string aside = absl::StrCat(path, ".", number);
  fs::rename(path, aside, error);
  if (!error) return aside;
  return absl::ErrnoToStatus(error.value(), absl::StrCat(path, ": cannot be moved aside"));
}

}  // namespace plait::data
