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

// Calls `write` with the prompt and then the text of each token as it is drawn, sample after sample, with a line of
// dashes after each, and finally the speed:
//
//   500 tokens in 1.234567 s: 405.0 tokens/s
//
// (over all samples, with the prompts' passes). Samples are drawn --batch-size at a time; the text of later samples is
// written once the earlier ones are complete. Text that may be part of a character or of a stop string is held back
// until that is decided. INVALID_ARGUMENT for an empty prompt, one with the text of an added token, or a file
// without prompts; errors of the tokenizer's Encode and of sampling::GenerateBatch. Local.
absl::Status WriteSamples(const Request& request, SavedTextModel& saved,
                          const std::function<void(absl::string_view text)>& write);

}  // namespace plait::text_generation

#endif  // PLAIT_TOOLS_TEXT_GENERATION_SAMPLES_H_
