#include "data/hdf5/image_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"

namespace plait::data {
namespace {

absl::Status DiskError(int error, const std::string& path, absl::string_view doing) {
  const std::string message = absl::StrCat(path, ": ", doing, ": ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) return absl::ResourceExhaustedError(message);
  return absl::Status(absl::ErrnoToStatusCode(error), message);
}

// Closes itself, without telling of errors.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : id_(open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~Descriptor() {
    if (id_ >= 0) close(id_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int id() const { return id_; }

 private:
  int id_;
};

// Whether the file is `bytes` long then; room is taken where the file system can.
bool Reserve(int descriptor, std::int64_t bytes) {
  const bool taken = bytes == 0 || fallocate(descriptor, 0, 0, bytes) == 0;
  if (!taken && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) return false;
  return ftruncate(descriptor, bytes) == 0;
}

bool WriteAt(int descriptor, std::int64_t offset, absl::Span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(descriptor, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(written);
    offset += written;
  }
  return true;
}

}  // namespace

absl::Status WriteImage(const FileImage& image, const std::string& path) {
  const Descriptor file(path, O_RDWR | O_CREAT | O_TRUNC);
  if (file.id() < 0) return DiskError(errno, path, "cannot be made");
  if (!Reserve(file.id(), image.size_bytes())) {
    return DiskError(errno, path, absl::StrCat("no room for ", image.size_bytes(), " bytes"));
  }
  absl::Status status;
  image.ForEachPart([&](std::int64_t offset, absl::Span<const char> bytes) {
    if (!WriteAt(file.id(), offset, bytes)) status = DiskError(errno, path, "cannot be written");
    return status.ok();
  });
  return status;
}

absl::Status ReadImage(const std::string& path, FileImage& image) {
  const Descriptor file(path, O_RDONLY);
  if (file.id() < 0) return DiskError(errno, path, "cannot be opened");
  std::vector<char> bytes(std::size_t{1} << 20);
  for (std::int64_t offset = 0;;) {
    const ssize_t got = pread(file.id(), bytes.data(), bytes.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return DiskError(errno, path, "cannot be read");
    if (got == 0) return absl::OkStatus();
    image.Write(offset, absl::MakeConstSpan(bytes.data(), got));
    offset += got;
  }
}

}  // namespace plait::data
