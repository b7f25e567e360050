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

// Calls `write` with the prompt and then the text of each token as it is drawn, sample after sample, with a rule
// between them, and finally the speed:
//
//   500 tokens in 1.234567 s: 405.0 tokens/s
//
// (of all samples, the prompts' passes included). Samples are drawn --batch-size at a time; what comes of the later ones
// is written when those before are complete. Characters of several tokens, and what may be a stop text, are written when
// that is decided. InvalidArgument for a prompt that the tokenizer cannot encode, or a file without prompts; errors of
// sampling::GenerateBatch. Local.
absl::Status WriteSamples(const Request& request, SavedTextModel& saved,
                          const std::function<void(absl::string_view text)>& write);

}  // namespace plait::text_generation

#endif  // PLAIT_TOOLS_TEXT_GENERATION_SAMPLES_H_
