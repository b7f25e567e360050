// One save in three phases, of which the slow one can run in the background while training continues:
//
//   PLAIT_ASSIGN_OR_RETURN(SaveTask task, SaveTask::Prepare(comm, root, step, pieces, state, options));
//   absl::Status mine = task.WriteValues(values);       // local, any thread, no HDF5, no messages
//   absl::StatusOr<SaveReport> done = task.Commit(mine);
//
// Prepare and Commit are collective. SaveCheckpoint (save.h) runs all three in a row: the index is built while the
// disk is busy. AsyncSaver (async_saver.h) runs WriteValues and Flush on a thread, so that Commit need not wait.
#ifndef PLAIT_PARALLEL_CHECKPOINT_SAVE_TASK_H_
#define PLAIT_PARALLEL_CHECKPOINT_SAVE_TASK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "comm/communicator.h"
#include "parallel/checkpoint/layout.h"
#include "parallel/checkpoint/save.h"
#include "parallel/checkpoint/shard_file.h"

namespace plait::parallel {

// Points of a save at which tests kill the process or inject an error.
enum class SavePoint {
  kFolderReady,    // rank 0
  kFileLaidOut,    // every rank, in memory
  kValuesWritten,  // every rank
  kIndexWritten,   // this and all below: rank 0
  kPublished,
  kLatestWritten,
  kOlderRemoved,
};

// Called at each point that this rank passes; an error is handled as if the work before it had failed.
using SaveObserver = std::function<absl::Status(SavePoint)>;

class SaveTask {
 public:
  // Collective over `comm`. On error, the same on all ranks, the partial folder is removed.
  static absl::StatusOr<SaveTask> Prepare(const comm::Communicator& comm, const std::string& root,
                                          std::int64_t step, absl::Span<const TensorPiece> pieces,
                                          const CheckpointState& state, const SaveOptions& options,
                                          SaveObserver observer = {});

  // The pieces of this rank in the order in which WriteValues expects them; empty ones are left out.
  const std::vector<LayoutPiece>& own_pieces() const { return own_; }

  // Writes this rank's file. `values`: a pointer to the elements of each of own_pieces(), in the same order.
  absl::Status WriteValues(absl::Span<const void* const> values);
  // Waits until the file is on the disk (fsync). Local, any thread. Commit calls it if nobody has.
  absl::Status Flush() { return file_.Sync(); }

  // Collective. `mine` is the status of this rank's WriteValues (and Flush). Waits longer than the session's timeout for
  // ranks that still write, in proportion to the checkpoint's bytes. Returns the same result on all ranks;
  // errors as SaveCheckpoint's.
  absl::StatusOr<SaveReport> Commit(const absl::Status& mine);

 private:
  SaveTask(comm::Communicator comm, std::string root, Layout layout, const CheckpointState& state,
           const SaveOptions& options, SaveObserver observer);

  absl::Status Passed(SavePoint point) const;
  absl::Status MakeReadyFolder() const;
  absl::Status LayOutFile();
  std::vector<ShardSummary> GatherSummaries() const;
  absl::Status WriteIndexFile(const std::vector<ShardSummary>& shards) const;
  absl::Status Publish(const std::vector<ShardSummary>& shards) const;
  // Collective. If `agreed` is an error, removes the partial folder. Returns `agreed`.
  absl::Status GiveUpUnless(const absl::Status& agreed) const;

  comm::Communicator comm_;
  std::string root_;
  Layout layout_;
  CheckpointState state_;
  SaveOptions options_;
  SaveObserver observer_;
  std::vector<LayoutPiece> own_;
  ShardFile file_;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_SAVE_TASK_H_
