// The kinds of language models that programs train and sample from, and where they come from.
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
#include "models/llama/options.h"
#include "models/module_model.h"

namespace plait::text_training {

// Instead of a text: --data=random, and the tokenizer in checkpoints.
inline constexpr char kRandomTokens[] = "random";

using ModelOptions = std::variant<gpt::GptOptions, llama::LlamaOptions>;

std::unique_ptr<models::ModuleModel> MakeModel(const ModelOptions& options,
                                               const at::TensorOptions& tensor_options);
std::int64_t VocabularyOf(const ModelOptions& options);
std::int64_t PositionsOf(const ModelOptions& options);  // tokens it can see at once
std::int64_t HeadsOf(const ModelOptions& options);      // of attention's queries
// Of a step, forward and backward, with sequences of `sequence` tokens.
double FlopsPerToken(const ModelOptions& options, std::int64_t sequence);

// A folder in Hugging Face's layout.
struct InitialModel {
  ModelOptions options;
  std::shared_ptr<const hugging_face::Weights> weights;
  std::string note = "";  // for people: what is not as in the files
};

// `kind`: "gpt2" or "llama"; empty: what config.json says. Errors as HuggingFaceGpt2::Open; InvalidArgument
// for another kind.
absl::StatusOr<InitialModel> OpenHuggingFace(const std::string& folder, std::string kind = "");

// A whole model, with memory; errors as SaveHuggingFaceGpt2.
absl::Status SaveHuggingFace(const models::ModuleModel& model, const std::string& folder);

}  // namespace plait::text_training

#endif  // PLAIT_TOOLS_TEXT_TRAINING_LANGUAGE_MODEL_H_
