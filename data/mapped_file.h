// A file's bytes in memory, read from the disk as they are looked at: it may be larger than the memory. Whoever makes the
// file shorter meanwhile ends the process.
#ifndef PLAIT_DATA_MAPPED_FILE_H_
#define PLAIT_DATA_MAPPED_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plait::data {

class MappedFile {
 public:
  // An error of the system names the path; FailedPrecondition for what is no ordinary file. May be empty.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept : bytes_(other.bytes_) { other.bytes_ = {}; }
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  // Begins at a page; stays where it is when the MappedFile is moved.
  absl::string_view bytes() const { return bytes_; }

 private:
  explicit MappedFile(absl::string_view bytes) : bytes_(bytes) {}

  absl::string_view bytes_;
};

}  // namespace plait::data

#endif  // PLAIT_DATA_MAPPED_FILE_H_
