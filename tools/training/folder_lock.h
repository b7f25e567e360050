// A lock on a checkpoint directory, so that one job at a time writes to it.
//
//   PLAIT_ASSIGN_OR_RETURN(const std::unique_ptr<FolderLock> lock, FolderLock::Take("run", {.job_id = id}));
//
// The lock is the file DIR/lock with host, process and job of its owner. It is created by link(), which is
// atomic on NFS, Lustre and GPFS as well, and a thread touches it every `touch_seconds` as long as the
// process lives. A stale lock, left by a killed job, is removed:
//   - an owner on this host, in this container, is looked up in /proc, so that a stale lock is found at once;
//   - for any other owner the file is watched for `watch_seconds` and is stale if it is not touched. Only
//     modification times set by the file system are compared, so hosts' clocks may differ; opening the file makes
//     NFS fetch its current times.
// Local: call it on the one rank that changes the directory.
#ifndef PLAIT_TOOLS_TRAINING_FOLDER_LOCK_H_
#define PLAIT_TOOLS_TRAINING_FOLDER_LOCK_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"

namespace plait::training {

struct FolderLockOptions {
  std::string job_id = "";  // the scheduler's, for messages
  double touch_seconds = 10, watch_seconds = 25;
  // Called before the lock of another host or container is watched.
  std::function<void(const std::string& line)> say = [](const std::string&) {};
  std::string host = "";  // empty: the name of this host
};

class FolderLock {
 public:
  // Takes the lock of an existing directory; blocks for up to `watch_seconds` per attempt. ALREADY_EXISTS, naming host,
  // process and job, if another process holds it; errors of the file system.
  static absl::StatusOr<std::unique_ptr<FolderLock>> Take(const std::string& folder,
                                                          const FolderLockOptions& options);
  // Releases the lock: removes the file if it still is this owner's.
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  FolderLock(std::string path, std::string content, double touch_seconds);

  std::string path_, content_;
  std::jthread toucher_;  // touches the file now and then
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_FOLDER_LOCK_H_
