// The model and its vocabulary in a checkpoint of train_gpt.
//
//   KeepModel(saved_model, state);                       // state: parallel::CheckpointState
//
//   PLAIT_ASSIGN_OR_RETURN(const SavedModel model, SavedModelOf(checkpoint));
//
// Local.
#ifndef PLAIT_TOOLS_GPT_TRAINING_SAVED_MODEL_H_
#define PLAIT_TOOLS_GPT_TRAINING_SAVED_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/text/tokenizer.h"
#include "models/gpt/options.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/save.h"

namespace plait::gpt_training {

struct SavedModel {
  gpt::GptOptions options;
  std::string tokenizer;  // "characters" or "gpt2", as the flag
  std::uint32_t tokenizer_digest = 0;
  std::vector<std::int32_t> code_points;  // of characters
};

void KeepModel(const SavedModel& model, parallel::CheckpointState& state);

// Errors name what the checkpoint lacks: it is another program's.
absl::StatusOr<SavedModel> SavedModelOf(const parallel::Checkpoint& checkpoint);

// Of the text that the model has learned. `bpe_folder`: of GPT-2's files. FailedPrecondition where these are
// of another vocabulary.
absl::StatusOr<std::unique_ptr<data::Tokenizer>> TokenizerOf(const SavedModel& model,
                                                             const std::string& bpe_folder);

}  // namespace plait::gpt_training

#endif  // PLAIT_TOOLS_GPT_TRAINING_SAVED_MODEL_H_
