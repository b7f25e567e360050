// A POSIX file with positioned reads and writes, and absl::Status errors of one line. Thread-safe, unlike HDF5: may be
// used while another thread is inside HDF5.
#ifndef PLAIT_BASE_FILE_DESCRIPTOR_H_
#define PLAIT_BASE_FILE_DESCRIPTOR_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace plait::base {

// Move-only. The destructor closes the file and ignores errors: call Sync() first.
class FileDescriptor {
 public:
  enum class Mode { kRead, kReadWrite, kOpenOrCreate, kCreate };
  // kReadWrite: the file must exist. kOpenOrCreate: for reading and writing, keeps the contents. kCreate: the same,
  // truncated. Directories can be opened with kRead, to Sync() them; kRead does not block at a named pipe, which then
  // seems empty. Errors as DiskError().
  static absl::StatusOr<FileDescriptor> Open(const std::string& path, Mode mode);
  FileDescriptor(FileDescriptor&& other) noexcept
      : path_(std::move(other.path_)), id_(std::exchange(other.id_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(id_, other.id_);
    return *this;
  }
  ~FileDescriptor();

  // Takes an exclusive lock (flock), held until this descriptor is closed. FAILED_PRECONDITION if it is held elsewhere;
  // OK without a lock on file systems that have none.
  absl::Status Lock() const;
  // The same, but blocks until the lock is free.
  void WaitForLock() const;
  absl::StatusOr<std::int64_t> SizeBytes() const;
  absl::Status Truncate(std::int64_t bytes) const;
  // Sets the length to `bytes` and allocates the blocks, so that a full disk is found before the data is computed.
  // RESOURCE_EXHAUSTED if there is no space. Where the file system cannot preallocate, only the length is set.
  absl::Status Reserve(std::int64_t bytes) const;
  // Reads or writes all `bytes` at `offset`. Reading past the end of the file is DATA_LOSS.
  absl::Status ReadAt(void* to, std::int64_t bytes, std::int64_t offset) const;
  absl::Status WriteAt(const void* from, std::int64_t bytes, std::int64_t offset) const;
  // Starts writing the range back to the disk (sync_file_range) and returns at once. A hint: only Sync() makes the data
  // durable and reports errors.
  void StartSync(std::int64_t offset, std::int64_t bytes) const;
  // fsync: blocks until the contents are on the disk.
  absl::Status Sync() const;

 private:
  FileDescriptor(std::string path, int id) : path_(std::move(path)), id_(id) {}

  std::string path_;
  int id_ = -1;
};

// Raises the soft limit of open files (RLIMIT_NOFILE) to the hard one: for a process with a connection to every rank.
void AllowManyFiles();

// "PATH: DOING: ..." for an errno. Full disks, quotas and file size limits are RESOURCE_EXHAUSTED, everything else has
// absl::ErrnoToStatusCode's code.
absl::Status DiskError(int error, const std::string& path, const std::string& doing);

}  // namespace plait::base

#endif  // PLAIT_BASE_FILE_DESCRIPTOR_H_
