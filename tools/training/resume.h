// The checkpoint directory of a run: takes its lock and finds the checkpoint to resume from.
//
//   PLAIT_ASSIGN_OR_RETURN(CheckpointPlace place,
//                          OpenCheckpointPlace("train_cnn", settings, table, world, job_id, say));
//   if (place.checkpoint.has_value()) {
//     PLAIT_RETURN_IF_ERROR(CompareFacts(*place.checkpoint, facts));
//   }
//
// Checkpoints keep every setting that is not OnResume::kFree, and the task's facts, as texts named "setting.NAME".
// Collective; errors are the same on all ranks.
#ifndef PLAIT_TOOLS_TRAINING_RESUME_H_
#define PLAIT_TOOLS_TRAINING_RESUME_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm/communicator.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/save.h"
#include "tools/training/folder_lock.h"
#include "tools/training/settings.h"

namespace plait::training {

// Name of the fact that every run has: samples of a micro-batch over all data-parallel ranks.
inline constexpr char kGlobalBatch[] = "batch_size_of_all_ranks";

struct CheckpointPlace {
  std::unique_ptr<FolderLock> lock;                // on rank 0, with --checkpoint-dir
  std::optional<parallel::Checkpoint> checkpoint;  // to resume from
};

// Locks --checkpoint-dir, finds the checkpoint that --resume names, and adopts the settings of its run
// (SettingsTable::Adopt; also --global-batch-size if no batch size is given). `say` gets messages for the log, such as
// why the latest checkpoint could not be opened and an earlier one is taken.
// ALREADY_EXISTS if the directory has complete checkpoints and --resume is not given, or if another process holds the
// lock; NOT_FOUND if there is nothing to resume from, unless --resume=auto; DATA_LOSS for a checkpoint of another
// program; INVALID_ARGUMENT if a kSame or kPreset setting differs.
absl::StatusOr<CheckpointPlace> OpenCheckpointPlace(const std::string& program, Settings& settings,
                                                    SettingsTable& table, const comm::Communicator& world,
                                                    const std::string& job_id,
                                                    const std::function<void(const std::string&)>& say);

// Local. --keep-last, and which checkpoints of --checkpoint-dir the run goes back behind if it resumes from `resumed`.
parallel::SaveOptions SaveOptionsOf(const Settings& settings,
                                    const std::optional<parallel::Checkpoint>& resumed);

// Local. INVALID_ARGUMENT "FOLDER: checkpoint of another run: NAME is X there and Y here" for the first fact that
// differs. Facts that the checkpoint lacks, as those of earlier versions may, are not compared.
absl::Status CompareFacts(const parallel::Checkpoint& checkpoint, const NamedValues& facts);

// Local. A fact about data: CRC-32 of `count` numbers, of more than a million of 256 evenly spaced pieces of them.
std::string DigestOf(std::int64_t count, absl::FunctionRef<std::int64_t(std::int64_t index)> number);

// Local. Adds program, settings and facts to the state to be saved.
void KeepSettings(const std::string& program, const NamedValues& kept, const NamedValues& facts,
                  parallel::CheckpointState& state);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_RESUME_H_
