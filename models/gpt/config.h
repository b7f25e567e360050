// Parses and writes the config.json of Hugging Face's GPT-2. Local.
#ifndef PLAIT_MODELS_GPT_CONFIG_H_
#define PLAIT_MODELS_GPT_CONFIG_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/gpt/options.h"
#include "models/hugging_face/special_tokens.h"

namespace plait::gpt {

// `text`: the contents of config.json. InvalidArgument, without a path: not JSON, another "model_type", a size that is
// not a positive integer, an option that Gpt does not support (named). Dropout is not read; it is 0.
absl::StatusOr<GptOptions> OptionsFromConfig(absl::string_view text);
// The contents of config.json for a GPT2LMHeadModel. If no token begins texts, the first of those that end them does,
// as in GPT-2.
std::string ConfigText(const GptOptions& options, const hugging_face::SpecialTokens& special = {});

}  // namespace plait::gpt

#endif  // PLAIT_MODELS_GPT_CONFIG_H_
