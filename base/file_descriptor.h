// A POSIX file that is read and written at given places, with absl::Status errors of one line. Other than
// HDF5 it may be used on any thread while HDF5 is busy on another.
#ifndef PLAIT_BASE_FILE_DESCRIPTOR_H_
#define PLAIT_BASE_FILE_DESCRIPTOR_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace plait::base {

// Move-only; closes itself, without telling of errors: Sync() first.
class FileDescriptor {
 public:
  enum class Mode { kRead, kReadWrite, kOpenOrCreate, kCreate };
  // kOpenOrCreate: for reading and writing, keeps what is there. kCreate: the same, but emptied. Folders can
  // be opened for reading, to Sync() them.
  static absl::StatusOr<FileDescriptor> Open(const std::string& path, Mode mode);
  FileDescriptor(FileDescriptor&& other) noexcept
      : path_(std::move(other.path_)), id_(std::exchange(other.id_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(id_, other.id_);
    return *this;
  }
  ~FileDescriptor();

  // An exclusive lock (flock) that ends with the process. FAILED_PRECONDITION if another process holds it.
  absl::Status Lock() const;
  // The same once nobody else holds it; without effect on file systems that have no locks.
  void WaitForLock() const;
  absl::StatusOr<std::int64_t> SizeBytes() const;
  absl::Status Truncate(std::int64_t bytes) const;
  // The file is `bytes` long then, and its room is taken on the disk, so that a full disk is known before the
  // work is done; on file systems that cannot take room, only its length is set.
  absl::Status Reserve(std::int64_t bytes) const;
  // All `bytes` at `offset`. A file that ends before them is DATA_LOSS.
  absl::Status ReadAt(void* to, std::int64_t bytes, std::int64_t offset) const;
  absl::Status WriteAt(const void* from, std::int64_t bytes, std::int64_t offset) const;
  // The disk begins with what was written there, while the caller goes on; Sync() waits and tells of errors.
  void StartSync(std::int64_t offset, std::int64_t bytes) const;
  // Until it is on the disk.
  absl::Status Sync() const;

 private:
  FileDescriptor(std::string path, int id) : path_(std::move(path)), id_(id) {}

  std::string path_;
  int id_ = -1;
};

// The error of a call that set `error`: full disks and files over a limit are RESOURCE_EXHAUSTED.
absl::Status DiskError(int error, const std::string& path, const std::string& doing);

}  // namespace plait::base

#endif  // PLAIT_BASE_FILE_DESCRIPTOR_H_
