// The kinds of language models that programs train and sample from, and their Hugging Face files.
//
//   PLAIT_ASSIGN_OR_RETURN(const InitialModel files, OpenHuggingFace("model"));
//   const std::unique_ptr<models::ModuleModel> model = MakeModel(files.options, at::kFloat);
//   PLAIT_RETURN_IF_ERROR(files.weights->ReadAll(*model));
//
// Local.
#ifndef PLAIT_TOOLS_TEXT_TRAINING_LANGUAGE_MODEL_H_
#define PLAIT_TOOLS_TEXT_TRAINING_LANGUAGE_MODEL_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "models/gpt/options.h"
#include "models/hugging_face/safetensors.h"
#include "models/hugging_face/special_tokens.h"
#include "models/llama/options.h"
#include "models/module_model.h"

namespace plait::text_training {

// Value of --data for random tokens, and name of the tokenizer in checkpoints that have none.
inline constexpr char kRandomTokens[] = "random";

using ModelOptions = std::variant<gpt::GptOptions, llama::LlamaOptions>;

std::unique_ptr<models::ModuleModel> MakeModel(const ModelOptions& options,
                                               const at::TensorOptions& tensor_options);
std::int64_t VocabularyOf(const ModelOptions& options);
std::int64_t PositionsOf(const ModelOptions& options);  // maximum sequence length
std::int64_t HeadsOf(const ModelOptions& options);      // query heads per layer
// FLOPs of forward and backward per token, for sequences of `sequence` tokens.
double FlopsPerToken(const ModelOptions& options, std::int64_t sequence);

// A directory in Hugging Face's layout.
struct InitialModel {
  ModelOptions options;
  std::shared_ptr<const hugging_face::Weights> weights;
  hugging_face::SpecialTokens special = {};
  std::string note = "";  // warning about differences from the files; may be empty
};

// `kind`: "gpt2" or "llama"; empty: model_type of config.json. Errors of HuggingFaceGpt2::Open or
// HuggingFaceLlama::Open, and of SpecialTokensFrom (models/hugging_face/config.h); INVALID_ARGUMENT for another kind.
absl::StatusOr<InitialModel> OpenHuggingFace(const std::string& folder, std::string kind = "");

// Writes a model whose parameters are all materialized. Errors of SaveHuggingFaceGpt2 or SaveHuggingFaceLlama.
absl::Status SaveHuggingFace(const models::ModuleModel& model, const std::string& folder,
                             const hugging_face::SpecialTokens& special);

}  // namespace plait::text_training

#endif  // PLAIT_TOOLS_TEXT_TRAINING_LANGUAGE_MODEL_H_
