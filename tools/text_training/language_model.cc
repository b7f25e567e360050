#include "tools/text_training/language_model.h"

#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "models/gpt/gpt.h"
#include "models/gpt/safetensors.h"
#include "models/hugging_face/config.h"
#include "models/llama/llama.h"
#include "models/llama/safetensors.h"

namespace plait::text_training {
namespace {

using gpt::GptOptions;
using llama::LlamaOptions;

std::int64_t Positions(const GptOptions& options) { return options.block_size; }
std::int64_t Positions(const LlamaOptions& options) { return options.max_seq_len; }

template <typename Files>
absl::StatusOr<InitialModel> Open(const std::string& folder) {
  PLAIT_ASSIGN_OR_RETURN(Files opened, Files::Open(folder));
  const auto files = std::make_shared<const Files>(std::move(opened));
  PLAIT_ASSIGN_OR_RETURN(const std::string config, hugging_face::ReadConfig(folder));
  absl::StatusOr<hugging_face::SpecialTokens> special = hugging_face::SpecialTokensFrom(config);
  if (!special.ok()) return base::Prefixed(special.status(), hugging_face::ConfigPath(folder));
  InitialModel model = {files->options(), files, *std::move(special)};
  if constexpr (std::is_same_v<Files, llama::HuggingFaceLlama>) {
    if (files->tied()) model.note = "the head is initialized from the tied embedding and trained separately";
  }
  return model;
}

}  // namespace

std::unique_ptr<models::ModuleModel> MakeModel(const ModelOptions& options,
                                               const at::TensorOptions& tensor_options) {
  if (const auto* gpt = std::get_if<GptOptions>(&options)) {
    return std::make_unique<gpt::Gpt>(*gpt, tensor_options);
  }
  return std::make_unique<llama::Llama>(std::get<LlamaOptions>(options), tensor_options);
}

std::int64_t VocabularyOf(const ModelOptions& options) {
  return std::visit([](const auto& kind) { return kind.vocab_size; }, options);
}

std::int64_t HeadsOf(const ModelOptions& options) {
  if (const auto* gpt = std::get_if<gpt::GptOptions>(&options)) return gpt->n_head;
  return std::get<llama::LlamaOptions>(options).n_heads;
}

std::int64_t PositionsOf(const ModelOptions& options) {
  return std::visit([](const auto& kind) { return Positions(kind); }, options);
}

double FlopsPerToken(const ModelOptions& options, std::int64_t sequence) {
  return std::visit([&](const auto& kind) { return FlopsPerToken(kind, sequence); }, options);
}

absl::StatusOr<InitialModel> OpenHuggingFace(const std::string& folder, std::string kind) {
  if (kind.empty()) {
    PLAIT_ASSIGN_OR_RETURN(kind, hugging_face::ModelTypeOf(folder));
  }
  if (kind == "gpt2") return Open<gpt::HuggingFaceGpt2>(folder);
  if (kind == "llama") return Open<llama::HuggingFaceLlama>(folder);
  return absl::InvalidArgumentError(
      absl::StrCat(folder, "/config.json: \"model_type\" is \"", kind, "\"; expected \"gpt2\" or \"llama\""));
}

absl::Status SaveHuggingFace(const models::ModuleModel& model, const std::string& folder,
                             const hugging_face::SpecialTokens& special) {
  hugging_face::SaveOptions options;
  options.special = special;
  if (const auto* gpt = dynamic_cast<const gpt::Gpt*>(&model)) {
    return gpt::SaveHuggingFaceGpt2(*gpt, folder, options);
  }
  return llama::SaveHuggingFaceLlama(dynamic_cast<const llama::Llama&>(model), folder, options);
}

}  // namespace plait::text_training
