#include "data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace plait::data {
namespace {

absl::StatusOr<absl::string_view> Map(int descriptor, const std::string& path) {
  struct stat facts;
  if (fstat(descriptor, &facts) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be read"));
  if (!S_ISREG(facts.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": cannot be read, expected an ordinary file"));
  }
  const auto size = static_cast<std::size_t>(facts.st_size);
  if (size == 0) return absl::string_view();
  void* begin = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (begin == MAP_FAILED) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be mapped"));
  return absl::string_view(static_cast<const char*>(begin), size);
}

}  // namespace

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  // Without O_NONBLOCK, open() of a named pipe would block.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be opened"));
  const absl::StatusOr<absl::string_view> bytes = Map(descriptor, path);
  close(descriptor);
  if (!bytes.ok()) return bytes.status();
  return MappedFile(*bytes);
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

}  // namespace plait::data
