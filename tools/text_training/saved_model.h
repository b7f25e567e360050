// Model options and tokenizer in a checkpoint of train_gpt or train_llama.
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
#include "models/hugging_face/special_tokens.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/save.h"
#include "tools/text_training/language_model.h"

namespace plait::text_training {

struct SavedModel {
  ModelOptions options;
  std::string
      tokenizer;  // "characters", "gpt2" or "sentencepiece", as for --tokenizer; "random" if it had no tokenizer
  std::uint32_t tokenizer_digest = 0;
  std::vector<std::int32_t> code_points;  // vocabulary of "characters"
  hugging_face::SpecialTokens special = {};
};

// Those of the tokenizer, which may be null; where it has none, those of `model`: of the files that a model came from.
// A list of `model` that has the tokenizer's end of text stays as it is.
hugging_face::SpecialTokens SpecialTokensOf(const data::Tokenizer* tokenizer,
                                            const hugging_face::SpecialTokens& model);

// Adds the model to the state to be saved.
void KeepModel(const SavedModel& model, parallel::CheckpointState& state);

// An error if the checkpoint lacks an entry, has one out of range (DATA_LOSS), or describes sizes that its tensors do
// not have: it is another program's, or damaged.
absl::StatusOr<SavedModel> SavedModelOf(const parallel::Checkpoint& checkpoint);

// The tokenizer of the model's training text. `bpe_folder`: directory for data::LoadTokenizer, but for
// "characters". FAILED_PRECONDITION if it has another vocabulary, or if the model was trained without a tokenizer.
absl::StatusOr<std::unique_ptr<data::Tokenizer>> TokenizerOf(const SavedModel& model,
                                                             const std::string& bpe_folder);

}  // namespace plait::text_training

#endif  // PLAIT_TOOLS_TEXT_TRAINING_SAVED_MODEL_H_
