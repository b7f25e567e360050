// config.json of Hugging Face's GPT-2, as text, both ways. Local.
#ifndef PLAIT_MODELS_GPT_CONFIG_H_
#define PLAIT_MODELS_GPT_CONFIG_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/gpt/options.h"

namespace plait::gpt {

// config.json as text. InvalidArgument, without a path: not JSON, another "model_type", a size that is no
// positive number, an option whose function Gpt does not have (named). Dropout is not taken from it: 0.
absl::StatusOr<GptOptions> OptionsFromConfig(absl::string_view text);
std::string ConfigText(const GptOptions& options);

}  // namespace plait::gpt

#endif  // PLAIT_MODELS_GPT_CONFIG_H_
