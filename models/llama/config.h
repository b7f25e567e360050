// Parses and writes the config.json of Hugging Face's Llama. Local.
#ifndef PLAIT_MODELS_LLAMA_CONFIG_H_
#define PLAIT_MODELS_LLAMA_CONFIG_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/hugging_face/special_tokens.h"
#include "models/llama/options.h"

namespace plait::llama {

struct LlamaConfig {
  LlamaOptions options;
  bool tied = false;  // the head's weights are the embedding's
};

// `text`: the contents of config.json. InvalidArgument, without a path: not JSON, another "model_type", a size that is
// not a positive integer, an option that Llama does not support (named): RoPE scaling, biases, another activation, or a
// head_dim other than hidden_size / num_attention_heads.
absl::StatusOr<LlamaConfig> ConfigFrom(absl::string_view text);
// The contents of config.json for a LlamaForCausalLM, untied.
std::string ConfigText(const LlamaOptions& options, const hugging_face::SpecialTokens& special = {});

}  // namespace plait::llama

#endif  // PLAIT_MODELS_LLAMA_CONFIG_H_
