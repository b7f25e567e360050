// One job at a time writes into a directory of checkpoints.
//
//   PLAIT_ASSIGN_OR_RETURN(const std::unique_ptr<FolderLock> lock, FolderLock::Take("run", {.job_id = id}));
//
// The lock is the file DIR/lock with host, process and job of its owner. It is made by link(), which is
// atomic on NFS, Lustre and GPFS as well, and a thread touches it every `touch_seconds` as long as the
// process lives. What a job left that was killed does not stop the next one:
//   - an owner on this host, and in this container, is looked up among the processes, so that its lock counts at once as left;
//   - for any other owner the file is watched for `watch_seconds`: untouched means that the owner is
//     gone. Only times that the file system itself has noted are compared with each other, so clocks of hosts
//     may differ; opening the file makes NFS fetch the present times.
// Local: for the one rank that changes the directory.
#ifndef PLAIT_TOOLS_TRAINING_FOLDER_LOCK_H_
#define PLAIT_TOOLS_TRAINING_FOLDER_LOCK_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"

namespace plait::training {

struct FolderLockOptions {
  std::string job_id = "";  // of the scheduler
  double touch_seconds = 10, watch_seconds = 25;
  // Called once before another host's lock is watched.
  std::function<void(const std::string& line)> say = [](const std::string&) {};
  std::string host = "";  // empty: this one's name
};

class FolderLock {
 public:
  // The folder exists. AlreadyExists, naming host, process and job, where another process has it; errors of
  // the file system.
  static absl::StatusOr<std::unique_ptr<FolderLock>> Take(const std::string& folder,
                                                          const FolderLockOptions& options);
  // Removes the file.
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
