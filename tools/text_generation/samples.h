// Samples of a model, written as they are drawn.
#ifndef PLAIT_TOOLS_TEXT_GENERATION_SAMPLES_H_
#define PLAIT_TOOLS_TEXT_GENERATION_SAMPLES_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tools/text_generation/flags.h"
#include "tools/text_generation/saved_text_model.h"

namespace plait::text_generation {

// Calls `write` with the prompt and then the text of each token, sample after sample, with a rule between
// them, and finally the speed:
//
//   500 tokens in 1.234567 s: 405.0 tokens/s
//
// (of all samples, the prompts' passes included). Characters of several tokens are written when complete.
// InvalidArgument for a prompt that the tokenizer cannot encode; errors of sampling::Generate. Local.
absl::Status WriteSamples(const Request& request, SavedTextModel& saved,
                          const std::function<void(absl::string_view text)>& write);

}  // namespace plait::text_generation

#endif  // PLAIT_TOOLS_TEXT_GENERATION_SAMPLES_H_
