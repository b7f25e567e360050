// One save from beginning to end, in three parts, so that the slow one can go on beside training:
//
//   PLAIT_ASSIGN_OR_RETURN(SaveTask task, SaveTask::Prepare(comm, root, step, pieces, state, options));
//   absl::Status mine = task.WriteValues(values);       // local, any thread, no HDF5, no messages
//   absl::StatusOr<SaveReport> done = task.Commit(mine);
//
// Prepare and Commit are collective. Save (save.h) runs them in a row: the index is made while the disk works. AsyncSaver
// (async_saver.h) puts the middle part on a thread, which waits for the disk (Flush), so that Commit need not.
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

// Places in a save at which it can be killed or fail; tests do both there.
enum class SavePoint {
  kFolderReady,    // rank 0
  kFileLaidOut,    // every rank, in memory
  kValuesWritten,  // every rank
  kIndexWritten,   // rank 0, as all below
  kPublished,
  kLatestWritten,
  kOlderRemoved,
};

// Called at each point that this rank passes; an error is as if the work before it had failed.
using SaveObserver = std::function<absl::Status(SavePoint)>;

class SaveTask {
 public:
  // Collective. The same error on all ranks, and then nothing is left of the save.
  static absl::StatusOr<SaveTask> Prepare(const comm::Communicator& comm, const std::string& root,
                                          std::int64_t step, absl::Span<const TensorPiece> pieces,
                                          const CheckpointState& state, const SaveOptions& options,
                                          SaveObserver observer = {});

  // Which of the pieces given to Prepare are to be written, in this order; empty ones are not.
  const std::vector<LayoutPiece>& own_pieces() const { return own_; }

  // `values`: the elements of each of own_pieces(), in their order. All of this rank's file is written here.
  absl::Status WriteValues(absl::Span<const void* const> values);
  // Until the file is on the disk. Local, any thread; Commit does it where it was not done.
  absl::Status Flush() { return file_.Sync(); }

  // Collective; `mine` is what WriteValues, or Flush behind it, returned. The same result on all ranks. Errors as
  // SaveCheckpoint's.
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
  // Collective. Removes what there is of this save where `agreed` is an error, and returns it.
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
