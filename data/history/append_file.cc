#include "data/history/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/history/set_aside.h"

namespace plait::data {

AppendFile::AppendFile(std::string path, int descriptor, std::int64_t size)
    : path_(std::move(path)), descriptor_(descriptor), size_(size) {}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

AppendFile::~AppendFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::StatusOr<AppendFile> AppendFile::Create(const std::string& path, bool move_old_aside) {
  PLAIT_RETURN_IF_ERROR(MakeRoomFor(path, move_old_aside));
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be created"));
  return AppendFile(path, descriptor, 0);
}

absl::StatusOr<AppendFile> AppendFile::OpenAtEnd(const std::string& path) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be opened"));
  return AppendFile(path, descriptor, lseek(descriptor, 0, SEEK_END));
}

absl::Status AppendFile::Write(absl::string_view record) {
  std::size_t done = 0;
  while (done < record.size()) {
    const ssize_t written = pwrite(descriptor_, record.data() + done, record.size() - done, size_ + done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int cause = errno;
      if (ftruncate(descriptor_, size_) != 0)
        return absl::ErrnoToStatus(errno, absl::StrCat(path_, ": is damaged"));
      return absl::ErrnoToStatus(cause, absl::StrCat(path_, ": cannot be written"));
    }
    done += written;
  }
  size_ += static_cast<std::int64_t>(record.size());
  return absl::OkStatus();
}

}  // namespace plait::data
