#include "tools/gpt_training/saved_model.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "data/text/byte_pair_tokenizer.h"
#include "data/text/character_tokenizer.h"

namespace plait::gpt_training {
namespace {

using parallel::Checkpoint;

absl::StatusOr<std::vector<std::int32_t>> Numbers(const Checkpoint& checkpoint, const std::string& name) {
  PLAIT_ASSIGN_OR_RETURN(const std::string text, checkpoint.Text(name));
  std::vector<std::int32_t> numbers;
  for (const absl::string_view part : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    std::int32_t number = 0;
    if (!absl::SimpleAtoi(part, &number)) {
      return absl::DataLossError(
          absl::StrCat(checkpoint.folder(), ": ", name, ": \"", part, "\" is no number"));
    }
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

void KeepModel(const SavedModel& model, parallel::CheckpointState& state) {
  state.texts["model.dropout"] = absl::StrFormat("%a", model.options.dropout);
  state.texts["tokenizer"] = model.tokenizer;
  state.texts["tokenizer.code_points"] = absl::StrJoin(model.code_points, " ");
  const std::pair<const char*, std::int64_t> integers[] = {
      {"model.vocab_size", model.options.vocab_size},
      {"model.block_size", model.options.block_size},
      {"model.n_layer", model.options.n_layer},
      {"model.n_head", model.options.n_head},
      {"model.n_embd", model.options.n_embd},
      {"model.bias", model.options.bias ? 1 : 0},
      {"model.gelu_tanh", model.options.gelu == gpt::Gelu::kTanh ? 1 : 0},
      {"tokenizer.digest", model.tokenizer_digest}};
  for (const auto& [name, value] : integers) state.integers[name] = value;
}

absl::StatusOr<SavedModel> SavedModelOf(const Checkpoint& checkpoint) {
  SavedModel model;
  std::int64_t bias = 0, gelu_tanh = 0, digest = 0;
  gpt::GptOptions& options = model.options;
  const std::pair<const char*, std::int64_t*> integers[] = {
      {"model.vocab_size", &options.vocab_size}, {"model.block_size", &options.block_size},
      {"model.n_layer", &options.n_layer},       {"model.n_head", &options.n_head},
      {"model.n_embd", &options.n_embd},         {"model.bias", &bias},
      {"model.gelu_tanh", &gelu_tanh},           {"tokenizer.digest", &digest}};
  for (const auto& [name, value] : integers) {
    PLAIT_ASSIGN_OR_RETURN(*value, checkpoint.Integer(name));
  }
  options.bias = bias != 0;
  options.gelu = gelu_tanh != 0 ? gpt::Gelu::kTanh : gpt::Gelu::kExact;
  PLAIT_ASSIGN_OR_RETURN(options.dropout, checkpoint.Number("model.dropout"));
  PLAIT_RETURN_IF_ERROR(base::Prefixed(gpt::Validate(options), checkpoint.folder()));
  model.tokenizer_digest = static_cast<std::uint32_t>(digest);
  PLAIT_ASSIGN_OR_RETURN(model.tokenizer, checkpoint.Text("tokenizer"));
  PLAIT_ASSIGN_OR_RETURN(model.code_points, Numbers(checkpoint, "tokenizer.code_points"));
  return model;
}

absl::StatusOr<std::unique_ptr<data::Tokenizer>> TokenizerOf(const SavedModel& model,
                                                             const std::string& bpe_folder) {
  std::unique_ptr<data::Tokenizer> tokenizer;
  if (model.tokenizer == "characters") {
    PLAIT_ASSIGN_OR_RETURN(data::CharacterTokenizer characters,
                           data::CharacterTokenizer::FromCodePoints(model.code_points));
    tokenizer = std::make_unique<data::CharacterTokenizer>(std::move(characters));
  } else {
    PLAIT_ASSIGN_OR_RETURN(data::BytePairTokenizer pairs, data::BytePairTokenizer::Load(bpe_folder));
    tokenizer = std::make_unique<data::BytePairTokenizer>(std::move(pairs));
  }
  if (tokenizer->digest() == model.tokenizer_digest) return tokenizer;
  return absl::FailedPreconditionError(
      absl::StrCat("--bpe-folder=", bpe_folder,
                   ": another vocabulary than the model's; expected the files "
                   "that it was trained with"));
}

}  // namespace plait::gpt_training
