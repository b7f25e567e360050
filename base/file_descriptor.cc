#include "base/file_descriptor.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace plait::base {
namespace {

// One system call moves at most 2 GiB.
constexpr std::int64_t kMostPerCall = std::int64_t{1} << 30;

}  // namespace

void AllowManyFiles() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

absl::Status DiskError(int error, const std::string& path, const std::string& doing) {
  const std::string message = absl::StrCat(path, ": ", doing, ": ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) return absl::ResourceExhaustedError(message);
  return absl::Status(absl::ErrnoToStatusCode(error), message);
}

absl::StatusOr<FileDescriptor> FileDescriptor::Open(const std::string& path, Mode mode) {
  // Without O_NONBLOCK the call would wait for a writer of a named pipe; files and directories do not know it.
  constexpr int kFlags[] = {O_RDONLY | O_NONBLOCK, O_RDWR, O_RDWR | O_CREAT, O_RDWR | O_CREAT | O_TRUNC};
  const int id = open(path.c_str(), kFlags[static_cast<int>(mode)] | O_CLOEXEC, 0666);
  if (id < 0) return DiskError(errno, path, mode == Mode::kCreate ? "cannot be made" : "cannot be opened");
  return FileDescriptor(path, id);
}

FileDescriptor::~FileDescriptor() {
  if (id_ >= 0) close(id_);
}

absl::Status FileDescriptor::Lock() const {
  if (flock(id_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(path_, ": in use by another process"));
}

void FileDescriptor::WaitForLock() const {
  while (flock(id_, LOCK_EX) != 0 && errno == EINTR) {
  }
}

absl::Status FileDescriptor::Truncate(std::int64_t bytes) const {
  if (ftruncate(id_, bytes) == 0) return absl::OkStatus();
  return DiskError(errno, path_, "cannot be truncated");
}

absl::StatusOr<std::int64_t> FileDescriptor::SizeBytes() const {
  struct stat about;
  if (fstat(id_, &about) != 0) return DiskError(errno, path_, "cannot be examined");
  return about.st_size;
}

absl::Status FileDescriptor::Reserve(std::int64_t bytes) const {
  const bool taken = bytes == 0 || fallocate(id_, 0, 0, bytes) == 0;
  if (taken || (errno != ENOSPC && errno != EDQUOT && errno != EFBIG)) {
    if (ftruncate(id_, bytes) == 0) return absl::OkStatus();
  }
  return DiskError(errno, path_, absl::StrCat("no room for ", bytes, " bytes"));
}

absl::Status FileDescriptor::ReadAt(void* to, std::int64_t bytes, std::int64_t offset) const {
  auto* next = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = pread(id_, next, std::min(bytes, kMostPerCall), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return DiskError(errno, path_, "cannot be read");
    if (got == 0) return absl::DataLossError(absl::StrCat(path_, ": ends before byte ", offset + bytes));
    next += got;
    offset += got;
    bytes -= got;
  }
  return absl::OkStatus();
}

absl::Status FileDescriptor::WriteAt(const void* from, std::int64_t bytes, std::int64_t offset) const {
  const auto* next = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t put = pwrite(id_, next, std::min(bytes, kMostPerCall), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return DiskError(errno, path_, "cannot be written");
    next += put;
    offset += put;
    bytes -= put;
  }
  return absl::OkStatus();
}

void FileDescriptor::StartSync(std::int64_t offset, std::int64_t bytes) const {
  // A hint: file systems without it write at Sync().
  static_cast<void>(sync_file_range(id_, offset, bytes, SYNC_FILE_RANGE_WRITE));
}

absl::Status FileDescriptor::Sync() const {
  if (fsync(id_) == 0) return absl::OkStatus();
  return DiskError(errno, path_, "cannot be written to the disk");
}

}  // namespace plait::base
