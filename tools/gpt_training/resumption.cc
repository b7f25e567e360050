#include "tools/gpt_training/resumption.h"

#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "parallel/checkpoint/step_folders.h"
#include "parallel/training_state/training_state.h"

namespace plait::gpt_training {
namespace {

absl::StatusOr<Resumption> OpenLocally(const std::string& folder, const Corpus& corpus) {
  PLAIT_ASSIGN_OR_RETURN(parallel::Checkpoint checkpoint, parallel::Checkpoint::Open(folder));
  PLAIT_ASSIGN_OR_RETURN(const RunState state, RunStateOf(checkpoint));
  PLAIT_ASSIGN_OR_RETURN(const SavedModel model, SavedModelOf(checkpoint));
  if (model.tokenizer_digest != corpus.text.tokenizer_digest) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder, ": the vocabulary is another one than that of the text (", corpus.text.source,
                     "); give the --data and --tokenizer that the run began with"));
  }
  return Resumption{std::move(checkpoint), state};
}

// A checkpoint's own folder has an index.
bool IsCheckpoint(const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::path(folder) / "index.h5", ignored);
}

}  // namespace

absl::StatusOr<Resumption> OpenResumption(const Config& config, const Corpus& corpus,
                                          const comm::Communicator& world) {
  std::string folder = config.resume;
  if (!IsCheckpoint(folder)) {
    PLAIT_ASSIGN_OR_RETURN(folder, parallel::FindLatestCheckpoint(world, config.resume));
  }
  absl::StatusOr<Resumption> resumption = OpenLocally(folder, corpus);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(world.Agree(resumption.status()), "--resume"));
  return resumption;
}

absl::Status TakeState(Resumption& resumption, ShardedGpt& sharded) {
  const absl::Status restored =
      parallel::Restore(resumption.checkpoint, sharded.engine(), &sharded.optimizer());
  return base::Prefixed(restored, "--resume");
}

}  // namespace plait::gpt_training
