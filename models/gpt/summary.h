// The rows of a GPT for the table of models/summary.
//
//   std::puts(models::TableText(LayersOf(options, batch, seq), {.depth = 5, .input_bytes = 8 * batch * seq})
//                 .c_str());
#ifndef PLAIT_MODELS_GPT_SUMMARY_H_
#define PLAIT_MODELS_GPT_SUMMARY_H_

#include <cstdint>

#include "models/gpt/options.h"
#include "models/summary/model_table.h"

namespace plait::gpt {

// Layers as Gpt::Description() names them, for tokens (batch, seq). The head is marked as shared with the embedding.
// Attention's two products count all pairs of positions, masked ones too, as in FlopsPerToken().
models::Layer LayersOf(const GptOptions& options, std::int64_t batch, std::int64_t seq);

}  // namespace plait::gpt

#endif  // PLAIT_MODELS_GPT_SUMMARY_H_
