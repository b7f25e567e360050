// The model and its vocabulary in a checkpoint of train_gpt or train_llama.
//
//   KeepModel(saved_model, state);                       // state: parallel::CheckpointState
//
//   PLAIT_ASSIGN_OR_RETURN(const SavedModel model, SavedModelOf(checkpoint));
//
// Local.
#ifndef PLAIT_TOOLS_TEXT_TRAINING_SAVED_MODEL_H_
#define PLAIT_TOOLS_TEXT_TRAINING_SAVED_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/text/tokenizer.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/save.h"
#include "tools/text_training/language_model.h"

namespace plait::text_training {

struct SavedModel {
  ModelOptions options;
  std::string tokenizer;  // "characters" or "gpt2", as the flag; "random" where it learned no text
  std::uint32_t tokenizer_digest = 0;
  std::vector<std::int32_t> code_points;  // of characters
};

void KeepModel(const SavedModel& model, parallel::CheckpointState& state);

// Errors name what the checkpoint lacks, and sizes that its tensors do not have: it is another program's, or damaged.
absl::StatusOr<SavedModel> SavedModelOf(const parallel::Checkpoint& checkpoint);

// Of the text that the model has learned. `bpe_folder`: of GPT-2's files. FailedPrecondition where these are
// of another vocabulary, or the model learned no text.
absl::StatusOr<std::unique_ptr<data::Tokenizer>> TokenizerOf(const SavedModel& model,
                                                             const std::string& bpe_folder);

}  // namespace plait::text_training

#endif  // PLAIT_TOOLS_TEXT_TRAINING_SAVED_MODEL_H_
