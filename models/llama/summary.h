// The rows of a Llama-like decoder for the table of models/summary.
//
//   std::puts(models::TableText(LayersOf(options, batch, seq), {.depth = 2, .input_bytes = 8 * batch * seq})
//                 .c_str());
#ifndef PLAIT_MODELS_LLAMA_SUMMARY_H_
#define PLAIT_MODELS_LLAMA_SUMMARY_H_

#include <cstdint>

#include "models/llama/options.h"
#include "models/summary/model_table.h"

namespace plait::llama {

// Layers as Llama::Description() names them, for tokens (batch, seq). Attention's two products count all
// pairs of positions, masked ones too, as in FlopsPerToken().
models::Layer LayersOf(const LlamaOptions& options, std::int64_t batch, std::int64_t seq);

}  // namespace plait::llama

#endif  // PLAIT_MODELS_LLAMA_SUMMARY_H_
