// A read-only memory-mapped file, which may be larger than memory. If the file is truncated while it is mapped, the
// next access beyond its end kills the process (SIGBUS).
#ifndef PLAIT_DATA_MAPPED_FILE_H_
#define PLAIT_DATA_MAPPED_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plait::data {

class MappedFile {
 public:
  // FailedPrecondition if the path is not a regular file, else the system's error; both name the path. The file may be
  // empty.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept : bytes_(other.bytes_) { other.bytes_ = {}; }
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  // Page-aligned. Stays valid when the MappedFile is moved.
  absl::string_view bytes() const { return bytes_; }

 private:
  explicit MappedFile(absl::string_view bytes) : bytes_(bytes) {}

  absl::string_view bytes_;
};

}  // namespace plait::data

#endif  // PLAIT_DATA_MAPPED_FILE_H_
