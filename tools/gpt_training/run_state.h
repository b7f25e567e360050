// What a checkpoint of train_gpt says besides its tensors: where the run stood, and what the model is.
//
//   saver.Start(step, pieces, ToCheckpoint(run_state, saved_model));
//   PLAIT_ASSIGN_OR_RETURN(const RunState run_state, RunStateOf(checkpoint));
//   PLAIT_ASSIGN_OR_RETURN(const SavedModel model, SavedModelOf(checkpoint));      // for tools/generate
//
// Local. Random numbers need no state: blocks, dropout and samples are streams derived from the seed and the
// step (base/seed.h).
#ifndef PLAIT_TOOLS_GPT_TRAINING_RUN_STATE_H_
#define PLAIT_TOOLS_GPT_TRAINING_RUN_STATE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/text/block_sampler.h"
#include "data/text/tokenizer.h"
#include "models/gpt/options.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/save.h"
#include "parallel/optim/loss_scaler.h"

namespace plait::gpt_training {

struct RunState {
  std::int64_t step = 0;             // steps done
  std::int64_t optimizer_steps = 0;  // less those that overflowed
  std::int64_t history_draws = 0;
  std::uint64_t seed = 0;
  data::BlockSamplerState sampler;
  parallel::LossScalerState loss_scale;
};

struct SavedModel {
  gpt::GptOptions options;
  std::string tokenizer;  // "characters" or "gpt2", as the flag
  std::uint32_t tokenizer_digest = 0;
  std::vector<std::int32_t> code_points;  // of characters
};

// `texts`: for people, such as the settings.
parallel::CheckpointState ToCheckpoint(const RunState& run, const SavedModel& model,
                                       const std::map<std::string, std::string>& texts);

// Errors name what the checkpoint lacks: it is another program's.
absl::StatusOr<RunState> RunStateOf(const parallel::Checkpoint& checkpoint);
absl::StatusOr<SavedModel> SavedModelOf(const parallel::Checkpoint& checkpoint);

// Of the text that the model has learned. `bpe_folder`: of GPT-2's files. FailedPrecondition where these are
// of another vocabulary.
absl::StatusOr<std::unique_ptr<data::Tokenizer>> TokenizerOf(const SavedModel& model,
                                                             const std::string& bpe_folder);

}  // namespace plait::gpt_training

#endif  // PLAIT_TOOLS_GPT_TRAINING_RUN_STATE_H_
