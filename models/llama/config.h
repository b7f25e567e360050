// config.json of Hugging Face's Llama, as text, both ways. Local.
#ifndef PLAIT_MODELS_LLAMA_CONFIG_H_
#define PLAIT_MODELS_LLAMA_CONFIG_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/llama/options.h"

namespace plait::llama {

struct LlamaConfig {
  LlamaOptions options;
  bool tied = false;  // the head's weights are the embedding's
};

// config.json as text. InvalidArgument, without a path: not JSON, another "model_type", a size that is no
// positive number, an option whose function Llama does not have (named): scaled rotations, biases, another
// activation or width of heads.
absl::StatusOr<LlamaConfig> ConfigFrom(absl::string_view text);
std::string ConfigText(const LlamaOptions& options);

}  // namespace plait::llama

#endif  // PLAIT_MODELS_LLAMA_CONFIG_H_
