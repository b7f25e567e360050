// The directory of checkpoints of a run: whether it may write there, and what it resumes from.
//
//   PLAIT_ASSIGN_OR_RETURN(CheckpointPlace place,
//                          OpenCheckpointPlace("train_cnn", settings, table, world, job_id, say));
//   if (place.checkpoint.has_value()) {
//     PLAIT_RETURN_IF_ERROR(CompareFacts(*place.checkpoint, facts));
//   }
//
// Checkpoints keep every setting that is not OnResume::kFree, and facts that the program finds in its data,
// as texts named "setting.NAME". Collective; errors are the same on all ranks.
#ifndef PLAIT_TOOLS_TRAINING_RESUME_H_
#define PLAIT_TOOLS_TRAINING_RESUME_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm/communicator.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/save.h"
#include "tools/training/folder_lock.h"
#include "tools/training/settings.h"

namespace plait::training {

// Samples of a micro-batch over all data-parallel ranks: a fact of every run.
inline constexpr char kGlobalBatch[] = "batch_size_of_all_ranks";

struct CheckpointPlace {
  std::unique_ptr<FolderLock> lock;                // on rank 0, with --checkpoint-dir
  std::optional<parallel::Checkpoint> checkpoint;  // to resume from
};

// Locks --checkpoint-dir, finds the checkpoint that --resume means, and takes over the settings of its run
// (SettingsTable::Adopt; --global-batch-size too where no batch size is given). `say` gets lines for people.
// AlreadyExists where the directory has complete checkpoints and the run would not resume, or where another
// process writes there; NotFound where there is nothing to resume from, unless --resume=auto; DataLoss for
// another program's checkpoint; InvalidArgument for one of another run.
absl::StatusOr<CheckpointPlace> OpenCheckpointPlace(const std::string& program, Settings& settings,
                                                    SettingsTable& table, const comm::Communicator& world,
                                                    const std::string& job_id,
                                                    const std::function<void(const std::string&)>& say);

// Local. InvalidArgument "checkpoint of another run: NAME is X there and Y here" for the first that differs.
// Checkpoints of earlier versions may lack some.
absl::Status CompareFacts(const parallel::Checkpoint& checkpoint, const NamedValues& facts);

// Local. Adds program, settings and facts.
void KeepSettings(const std::string& program, const NamedValues& kept, const NamedValues& facts,
                  parallel::CheckpointState& state);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_RESUME_H_
