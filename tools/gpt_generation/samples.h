// Samples of a model, printed as they are drawn.
#ifndef PLAIT_TOOLS_GPT_GENERATION_SAMPLES_H_
#define PLAIT_TOOLS_GPT_GENERATION_SAMPLES_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tools/gpt_generation/flags.h"
#include "tools/gpt_generation/saved_gpt.h"

namespace plait::gpt_generation {

// Gives `write` the prompt and then the text of each token, sample after sample, with a rule between them and
// at the end what it cost:
//
//   500 tokens in 1.234567 s: 405.0 tokens/s
//
// (of all samples, the prompts' passes included). Characters of several tokens come when they are whole.
// InvalidArgument for a prompt that the tokenizer has no ids for. Local.
absl::Status WriteSamples(const Request& request, const SavedGpt& saved,
                          const std::function<void(absl::string_view text)>& write);

}  // namespace plait::gpt_generation

#endif  // PLAIT_TOOLS_GPT_GENERATION_SAMPLES_H_
