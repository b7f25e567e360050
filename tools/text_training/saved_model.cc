#include "tools/text_training/saved_model.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "data/text/character_tokenizer.h"
#include "data/text/tokenizer_folder.h"
#include "models/model_sizes.h"

namespace plait::text_training {
namespace {

using parallel::Checkpoint;

absl::StatusOr<std::vector<std::int32_t>> Numbers(const Checkpoint& checkpoint, const std::string& name) {
  PLAIT_ASSIGN_OR_RETURN(const std::string text, checkpoint.Text(name));
  std::vector<std::int32_t> numbers;
  for (const absl::string_view part : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    std::int32_t number = 0;
    if (!absl::SimpleAtoi(part, &number)) {
      return absl::DataLossError(
          absl::StrCat(checkpoint.folder(), ": ", name, ": \"", part, "\" is not a number"));
    }
    numbers.push_back(number);
  }
  return numbers;
}

// A numeric model option, with its name in checkpoints.
struct Field {
  const char* name;
  std::variant<std::int64_t*, int*, bool*, gpt::Gelu*, moe::GateKind*, moe::Activation*, double*> value;
};

// Absent in checkpoints of models without experts.
constexpr char kExperts[] = "model.moe.experts";

std::vector<Field> FieldsOf(moe::MoeOptions& o) {
  return {{kExperts, &o.gate.experts},
          {"model.moe.gate", &o.gate.kind},
          {"model.moe.top_k", &o.gate.k},
          {"model.moe.normalizes", &o.gate.normalizes},
          {"model.moe.sigmoid", &o.gate.sigmoid},
          {"model.moe.capacity_factor", &o.gate.capacity_factor},
          {"model.moe.hidden", &o.hidden},
          {"model.moe.activation", &o.activation},
          {"model.moe.gated", &o.gated},
          {"model.moe.bias", &o.bias},
          {"model.moe.shared_hidden", &o.shared_hidden}};
}

std::vector<Field> FieldsOf(gpt::GptOptions& o) {
  std::vector<Field> fields = {{"model.vocab_size", &o.vocab_size}, {"model.block_size", &o.block_size},
                               {"model.n_layer", &o.n_layer},       {"model.n_head", &o.n_head},
                               {"model.n_embd", &o.n_embd},         {"model.bias", &o.bias},
                               {"model.gelu_tanh", &o.gelu},        {"model.dropout", &o.dropout}};
  if (!o.moe.used()) return fields;
  fields.push_back({"model.moe_every", &o.moe_every});
  for (const Field& field : FieldsOf(o.moe)) fields.push_back(field);
  return fields;
}

std::vector<Field> FieldsOf(llama::LlamaOptions& o) {
  return {{"model.vocab_size", &o.vocab_size},
          {"model.max_seq_len", &o.max_seq_len},
          {"model.dim", &o.dim},
          {"model.n_layers", &o.n_layers},
          {"model.n_heads", &o.n_heads},
          {"model.n_kv_heads", &o.n_kv_heads},
          {"model.hidden", &o.hidden},
          {"model.norm_eps", &o.norm_eps},
          {"model.rope_theta", &o.rope_theta}};
}

gpt::Gelu LastOf(gpt::Gelu) { return gpt::Gelu::kTanh; }
moe::GateKind LastOf(moe::GateKind) { return moe::GateKind::kBias; }
moe::Activation LastOf(moe::Activation) { return moe::Activation::kSilu; }

absl::Status Read(const Checkpoint& checkpoint, const Field& field) {
  if (auto* const number = std::get_if<double*>(&field.value)) {
    PLAIT_ASSIGN_OR_RETURN(**number, checkpoint.Number(field.name));
    return absl::OkStatus();
  }
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t read, checkpoint.Integer(field.name));
  const bool fits = std::visit(
      [&](auto* value) {
        using Value = std::remove_reference_t<decltype(*value)>;
        if constexpr (std::is_enum_v<Value>) {
          if (read < 0 || read > static_cast<std::int64_t>(LastOf(*value))) return false;
        }
        *value = static_cast<Value>(read);
        return static_cast<std::int64_t>(*value) == read;
      },
      field.value);
  if (fits) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(checkpoint.folder(), ": ", field.name, "=", read, " is out of its bounds"));
}

// Sets whether the model has experts, which determines the fields to read.
void ReadExperts(const Checkpoint& checkpoint, gpt::GptOptions& options) {
  options.moe.gate.experts = checkpoint.Integer(kExperts).value_or(0) > 0 ? 1 : 0;
}
void ReadExperts(const Checkpoint&, llama::LlamaOptions&) {}

template <typename Options>
absl::StatusOr<ModelOptions> ReadOptions(const Checkpoint& checkpoint) {
  Options options;
  ReadExperts(checkpoint, options);
  for (const Field& field : FieldsOf(options)) PLAIT_RETURN_IF_ERROR(Read(checkpoint, field));
  PLAIT_RETURN_IF_ERROR(base::Prefixed(Validate(options), checkpoint.folder()));
  const Checkpoint::Totals held = checkpoint.TotalsOf("model");
  PLAIT_RETURN_IF_ERROR(base::Prefixed(models::CheckHeld(SizesOf(options), {held.tensors, held.elements}),
                                       checkpoint.folder()));
  return options;
}

// Checkpoints of earlier versions do not name the kind.
constexpr char kKind[] = "model.kind", kGpt[] = "gpt", kLlama[] = "llama";
constexpr char kBeginOfText[] = "tokenizer.begin_of_text", kEndsOfText[] = "tokenizer.ends_of_text";
// In those of earlier versions, in place of kEndsOfText, if there is one.
constexpr char kEndOfText[] = "tokenizer.end_of_text";

absl::StatusOr<hugging_face::SpecialTokens> ReadSpecialTokens(const Checkpoint& checkpoint) {
  hugging_face::SpecialTokens special;
  const auto& integers = checkpoint.integers();
  if (const auto begin = integers.find(kBeginOfText); begin != integers.end()) {
    special.begin_of_text = begin->second;
  }
  if (const auto end = integers.find(kEndOfText); end != integers.end()) special.ends_of_text = {end->second};
  if (!checkpoint.texts().contains(kEndsOfText)) return special;
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::int32_t> ends, Numbers(checkpoint, kEndsOfText));
  special.ends_of_text.assign(ends.begin(), ends.end());
  return special;
}

}  // namespace

hugging_face::SpecialTokens SpecialTokensOf(const data::Tokenizer* tokenizer,
                                            const hugging_face::SpecialTokens& model) {
  hugging_face::SpecialTokens special = model;
  if (tokenizer == nullptr) return special;
  if (tokenizer->begin_of_text()) special.begin_of_text = tokenizer->begin_of_text();
  std::vector<std::int64_t>& ends = special.ends_of_text;
  const std::optional<std::int32_t> end = tokenizer->end_of_text();
  if (end.has_value() && std::find(ends.begin(), ends.end(), *end) == ends.end()) ends = {*end};
  return special;
}

void KeepModel(const SavedModel& model, parallel::CheckpointState& state) {
  ModelOptions options = model.options;
  state.texts[kKind] = std::holds_alternative<gpt::GptOptions>(options) ? kGpt : kLlama;
  for (const Field& field : std::visit([](auto& kind) { return FieldsOf(kind); }, options)) {
    if (auto* const number = std::get_if<double*>(&field.value)) {
      state.texts[field.name] = absl::StrFormat("%a", **number);
    } else {
      state.integers[field.name] =
          std::visit([](const auto* value) { return static_cast<std::int64_t>(*value); }, field.value);
    }
  }
  state.texts["tokenizer"] = model.tokenizer;
  state.texts["tokenizer.code_points"] = absl::StrJoin(model.code_points, " ");
  state.integers["tokenizer.digest"] = model.tokenizer_digest;
  if (model.special.begin_of_text) state.integers[kBeginOfText] = *model.special.begin_of_text;
  state.texts[kEndsOfText] = absl::StrJoin(model.special.ends_of_text, " ");
}

absl::StatusOr<SavedModel> SavedModelOf(const Checkpoint& checkpoint) {
  SavedModel model;
  const bool llama = checkpoint.Text(kKind).value_or(kGpt) == kLlama;
  PLAIT_ASSIGN_OR_RETURN(model.options, llama ? ReadOptions<llama::LlamaOptions>(checkpoint)
                                              : ReadOptions<gpt::GptOptions>(checkpoint));
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t digest, checkpoint.Integer("tokenizer.digest"));
  model.tokenizer_digest = static_cast<std::uint32_t>(digest);
  PLAIT_ASSIGN_OR_RETURN(model.tokenizer, checkpoint.Text("tokenizer"));
  PLAIT_ASSIGN_OR_RETURN(model.code_points, Numbers(checkpoint, "tokenizer.code_points"));
  PLAIT_ASSIGN_OR_RETURN(model.special, ReadSpecialTokens(checkpoint));
  return model;
}

absl::StatusOr<std::unique_ptr<data::Tokenizer>> TokenizerOf(const SavedModel& model,
                                                             const std::string& bpe_folder) {
  if (model.tokenizer == kRandomTokens) {
    return absl::FailedPreconditionError(
        "the model was trained on tokens without a tokenizer: it cannot generate text");
  }
  std::unique_ptr<data::Tokenizer> tokenizer;
  if (model.tokenizer == "characters") {
    PLAIT_ASSIGN_OR_RETURN(data::CharacterTokenizer characters,
                           data::CharacterTokenizer::FromCodePoints(model.code_points));
    tokenizer = std::make_unique<data::CharacterTokenizer>(std::move(characters));
  } else {
    PLAIT_ASSIGN_OR_RETURN(tokenizer, data::LoadTokenizer(bpe_folder, model.tokenizer));
  }
  if (tokenizer->digest() == model.tokenizer_digest) return tokenizer;
  // As SentencePieceTokenizer::Load changes it.
  const bool begins_otherwise = tokenizer->digest() == ~model.tokenizer_digest;
  return absl::FailedPreconditionError(absl::StrCat(
      "--bpe-folder=", bpe_folder,
      begins_otherwise ? ": \"add_bos_token\" in tokenizer_config.json is not as it was in training"
                       : ": another vocabulary than the model's",
      "; expected the files that it was trained with"));
}

}  // namespace plait::text_training
