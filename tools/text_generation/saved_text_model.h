// A trained language model with the tokenizer of its text, unsharded, in one process.
//
//   PLAIT_ASSIGN_OR_RETURN(const SavedTextModel saved, LoadCheckpoint("run", /*bpe_folder=*/"", at::kFloat));
//   saved.model->SetTraining(false);
//   PLAIT_ASSIGN_OR_RETURN(const std::vector<std::int64_t> tokens,
//                          sampling::Generate({*saved.model, saved.positions}, prompt, 100, sampler));
//
// Local. Errors are one line: NotFound, DataLoss, InvalidArgument as those of parallel/checkpoint and
// data/safetensors.
#ifndef PLAIT_TOOLS_TEXT_GENERATION_SAVED_TEXT_MODEL_H_
#define PLAIT_TOOLS_TEXT_GENERATION_SAVED_TEXT_MODEL_H_

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/text/tokenizer.h"
#include "models/module_model.h"

namespace plait::text_generation {

struct SavedTextModel {
  std::unique_ptr<models::ModuleModel> model;
  std::int64_t positions;  // maximum context length in tokens
  std::unique_ptr<data::Tokenizer> tokenizer;
  std::string source;  // for messages: which checkpoint, after how many steps
  // Tokens that end a text, by the model's files, besides the tokenizer's.
  std::vector<std::int64_t> ends_of_text = {};
  // Texts of tokens that were added beside the tokenizer's vocabulary, by id.
  std::map<std::int32_t, std::string> added_tokens = {};
};

// `folder`: a checkpoint of train_gpt or train_llama, of any strategy, mesh and type, or a directory whose newest
// complete one is read. Parameters are converted to `type`. `bpe_folder`: directory of GPT-2's vocabulary, for models
// trained on byte pairs.
absl::StatusOr<SavedTextModel> LoadCheckpoint(const std::string& folder, const std::string& bpe_folder,
                                              c10::ScalarType type);

// `folder`: GPT-2 or Llama in Hugging Face's layout (models/gpt/safetensors.h, models/llama/safetensors.h), as its
// config.json says. The tokenizer (tokenizer.model, or GPT-2's two files) is read from `bpe_folder`, or from `folder`
// if that is empty; whether a prompt begins with BOS is in the tokenizer_config.json beside it. FAILED_PRECONDITION if
// it has more tokens than the model; errors of data::AddedTokens (data/text/tokenizer_settings.h).
absl::StatusOr<SavedTextModel> LoadHuggingFace(const std::string& folder, const std::string& bpe_folder,
                                               c10::ScalarType type);

}  // namespace plait::text_generation

#endif  // PLAIT_TOOLS_TEXT_GENERATION_SAVED_TEXT_MODEL_H_
