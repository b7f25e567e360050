// A trained GPT with the tokenizer of its text, unsharded, in one process.
//
//   PLAIT_ASSIGN_OR_RETURN(SavedGpt saved, LoadCheckpoint("run", /*bpe_folder=*/"", at::kFloat));
//   saved.model.SetTraining(false);
//   PLAIT_ASSIGN_OR_RETURN(auto tokens, sampling::Generate({saved.model, saved.model.options().block_size}, prompt, 100, sampler));
//
// Local. Errors are one line: NotFound, DataLoss, InvalidArgument as those of parallel/checkpoint and
// data/safetensors.
#ifndef PLAIT_TOOLS_GPT_GENERATION_SAVED_GPT_H_
#define PLAIT_TOOLS_GPT_GENERATION_SAVED_GPT_H_

#include <c10/core/ScalarType.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "data/text/tokenizer.h"
#include "models/gpt/gpt.h"

namespace plait::gpt_generation {

struct SavedGpt {
  gpt::Gpt model;
  std::unique_ptr<data::Tokenizer> tokenizer;
  std::string source;  // for messages: which checkpoint, after how many steps
};

// A checkpoint of train_gpt, of any strategy, mesh and type, or a directory whose newest complete one is
// read. Parameters are converted to `type`. `bpe_folder`: GPT-2's vocabulary, for models trained on byte
// pairs.
absl::StatusOr<SavedGpt> LoadCheckpoint(const std::string& folder, const std::string& bpe_folder,
                                        c10::ScalarType type);

// A folder with GPT-2 in Hugging Face's layout (models/gpt/safetensors.h). The vocabulary is the folder's
// where `bpe_folder` is empty. FailedPrecondition where it has more tokens than the model.
absl::StatusOr<SavedGpt> LoadHuggingFace(const std::string& folder, const std::string& bpe_folder,
                                         c10::ScalarType type);

}  // namespace plait::gpt_generation

#endif  // PLAIT_TOOLS_GPT_GENERATION_SAVED_GPT_H_
