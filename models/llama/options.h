// Sizes of a Llama-like decoder.
#ifndef PLAIT_MODELS_LLAMA_OPTIONS_H_
#define PLAIT_MODELS_LLAMA_OPTIONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "models/model_sizes.h"

namespace plait::llama {

struct LlamaOptions {
  std::int64_t vocab_size = 32000;
  std::int64_t max_seq_len = 2048;
  std::int64_t dim = 256;  // n_heads times an even head width
  std::int64_t n_layers = 24;
  std::int64_t n_heads = 16;
  std::int64_t n_kv_heads = 4;  // divides n_heads
  std::int64_t hidden = 720;    // width between w1 and w2
  double norm_eps = 1e-5;
  double rope_theta = 10000;

  friend bool operator==(const LlamaOptions&, const LlamaOptions&) = default;
};

// InvalidArgument if an option is out of range; the message names it.
absl::Status Validate(const LlamaOptions& options);

models::ModelSizes SizesOf(const LlamaOptions& options);

}  // namespace plait::llama

#endif  // PLAIT_MODELS_LLAMA_OPTIONS_H_
