#include "tools/text_generation/saved_text_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/text/tokenizer_folder.h"
#include "data/text/tokenizer_settings.h"
#include "parallel/checkpoint/checkpoint.h"
#include "tools/model_export/checkpoint_model.h"
#include "tools/text_training/saved_model.h"

namespace plait::text_generation {
namespace {

absl::StatusOr<std::unique_ptr<data::Tokenizer>> OpenTokenizer(const std::string& folder) {
  absl::StatusOr<std::unique_ptr<data::Tokenizer>> tokenizer = data::LoadTokenizer(folder);
  if (!absl::IsNotFound(tokenizer.status())) return tokenizer;
  return absl::NotFoundError(absl::StrCat(tokenizer.status().message(), "; --bpe-folder says where else"));
}

}  // namespace

absl::StatusOr<SavedTextModel> LoadCheckpoint(const std::string& folder, const std::string& bpe_folder,
                                              c10::ScalarType type) {
  PLAIT_ASSIGN_OR_RETURN(parallel::Checkpoint checkpoint, model_export::OpenNewest(folder));
  PLAIT_ASSIGN_OR_RETURN(const text_training::SavedModel saved, text_training::SavedModelOf(checkpoint));
  PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<data::Tokenizer> tokenizer,
                         text_training::TokenizerOf(saved, bpe_folder));
  SavedTextModel loaded = {
      .model = text_training::MakeModel(saved.options, at::TensorOptions(at::kMeta).dtype(type)),
      .positions = text_training::PositionsOf(saved.options),
      .tokenizer = std::move(tokenizer),
      .source = absl::StrCat(checkpoint.folder(), ", after step ", checkpoint.step()),
      .ends_of_text = saved.special.ends_of_text};
  PLAIT_RETURN_IF_ERROR(model_export::ReadParameters(checkpoint, *loaded.model));
  return loaded;
}

absl::StatusOr<SavedTextModel> LoadHuggingFace(const std::string& folder, const std::string& bpe_folder,
                                               c10::ScalarType type) {
  PLAIT_ASSIGN_OR_RETURN(const text_training::InitialModel files, text_training::OpenHuggingFace(folder));
  const std::string& tokenizer_folder = bpe_folder.empty() ? folder : bpe_folder;
  PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<data::Tokenizer> tokenizer, OpenTokenizer(tokenizer_folder));
  const std::int64_t vocabulary = text_training::VocabularyOf(files.options);
  // Some models have rows beyond the vocabulary, to round their number.
  if (tokenizer->vocabulary_size() > vocabulary) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder, ": the model has ", vocabulary, " tokens, its vocabulary ", tokenizer->vocabulary_size()));
  }
  PLAIT_ASSIGN_OR_RETURN(auto added, data::AddedTokens(tokenizer_folder));
  added.erase(added.begin(), added.lower_bound(tokenizer->vocabulary_size()));
  SavedTextModel loaded = {.model = text_training::MakeModel(files.options, type),
                           .positions = text_training::PositionsOf(files.options),
                           .tokenizer = std::move(tokenizer),
                           .source = folder,
                           .ends_of_text = files.special.ends_of_text,
                           .added_tokens = std::move(added)};
  PLAIT_RETURN_IF_ERROR(files.weights->ReadAll(*loaded.model));
  return loaded;
}

}  // namespace plait::text_generation
