#include "parallel/offload/block_file.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace plait::parallel {
namespace {

constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;

std::string FreeRoom(const std::string& folder) {
  struct statvfs info = {};
  if (statvfs(folder.c_str(), &info) != 0) return "";
  return absl::StrFormat(", %.3f GB are free",
                         static_cast<double>(info.f_bavail) * static_cast<double>(info.f_frsize) / 1e9);
}

bool MeansFull(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

absl::Status NoRoom(const std::string& what, const std::string& folder, std::int64_t bytes, int error) {
  return absl::ResourceExhaustedError(
      absl::StrFormat("%s: %.3f GB are needed in %s: %s%s; name a folder on a larger disk", what, bytes / 1e9,
                      folder, std::strerror(error), FreeRoom(folder)));
}

absl::Status CannotOpen(const std::string& what, const std::string& folder, int error) {
  const std::string message = absl::StrCat("cannot keep ", what, " in ", folder, ": ", std::strerror(error),
                                           "; name a folder that exists and takes files");
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(message);
  if (error == EACCES || error == EROFS || error == EPERM) return absl::PermissionDeniedError(message);
  return absl::UnavailableError(message);
}

absl::Status Failed(const std::string& what, const char* action, const std::string& folder,
                    std::int64_t offset, int error) {
  const std::string message =
      absl::StrFormat("%s in %s: cannot %s at byte %d: %s; resume from a checkpoint, with another folder",
                      what, folder, action, offset, std::strerror(error));
  return MeansFull(error) ? absl::ResourceExhaustedError(message) : absl::DataLossError(message);
}

bool GoesDirect(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  return flags >= 0 && fcntl(descriptor, F_SETFL, flags | O_DIRECT) == 0;
}

}  // namespace

absl::StatusOr<BlockFile> BlockFile::Create(const std::string& what, const std::string& folder,
                                            std::int64_t bytes) {
  std::string name = absl::StrCat(folder, "/plait-state-XXXXXX");
  const int descriptor = mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0) return CannotOpen(what, folder, errno);
  BlockFile file(what, folder, descriptor, Aligned(bytes));
  if (unlink(name.c_str()) != 0) return CannotOpen(what, folder, errno);
  if (file.bytes_ > 0) {
    int error = 0;
    do error = posix_fallocate(descriptor, 0, file.bytes_);
    while (error == EINTR);
    if (MeansFull(error)) return NoRoom(what, folder, file.bytes_, error);
    if (error != 0) return CannotOpen(what, folder, error);
  }
  file.direct_ = GoesDirect(descriptor);
  return file;
}

BlockFile::BlockFile(std::string what, std::string folder, int descriptor, std::int64_t bytes)
    : what_(std::move(what)),
      folder_(std::move(folder)),
      descriptor_(descriptor),
      bytes_(bytes),
      direct_(false) {}

BlockFile::BlockFile(BlockFile&& other) noexcept
    : what_(std::move(other.what_)),
      folder_(std::move(other.folder_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(other.bytes_),
      direct_(other.direct_) {}

BlockFile::~BlockFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

// A file system may accept O_DIRECT but require another block size: continues without it.
bool BlockFile::StopsGoingDirect(int error) {
  if (error != EINVAL || !direct_) return false;
  direct_ = false;
  return fcntl(descriptor_, F_SETFL, fcntl(descriptor_, F_GETFL) & ~O_DIRECT) == 0;
}

absl::Status BlockFile::Read(std::int64_t offset, std::byte* data, std::int64_t bytes) {
  for (std::int64_t done = 0; done < bytes;) {
    const ssize_t got = pread(descriptor_, data + done, std::min(kPieceBytes, bytes - done), offset + done);
    if (got > 0) {
      done += got;
    } else if (got == 0) {
      return absl::DataLossError(absl::StrFormat(
          "%s in %s: the file ends at byte %d of %d, something has cut it short; go on from a "
          "checkpoint",
          what_, folder_, offset + done, bytes_));
    } else if (errno != EINTR && !StopsGoingDirect(errno)) {
      return Failed(what_, "read", folder_, offset + done, errno);
    }
  }
  return absl::OkStatus();
}

absl::Status BlockFile::Write(std::int64_t offset, const std::byte* data, std::int64_t bytes) {
  for (std::int64_t done = 0; done < bytes;) {
    const ssize_t put = pwrite(descriptor_, data + done, std::min(kPieceBytes, bytes - done), offset + done);
    if (put >= 0) {
      done += put;
    } else if (errno != EINTR && !StopsGoingDirect(errno)) {
      return Failed(what_, "write", folder_, offset + done, errno);
    }
  }
  return absl::OkStatus();
}

}  // namespace plait::parallel
