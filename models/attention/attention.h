// Attention by LibTorch's operator, with grouped queries and a cache.
//
//   at::Tensor out = Attention(query, key, value);
//   at::Tensor out = Attention(query, key, value, {.cache = &cache, .layer = 3, .capacity = 2048});
//
//   query          (batch, heads, seq, width)
//   key, value     (batch, kv heads, seq, width), kv heads divides heads: query head h looks at key head
//                  h / (heads / kv heads) (Ainslie et al., 2023)
//   result         (batch, heads, seq, width): softmax(q k^T / sqrt(width)) v; causal: each query sees no later key
//
// With a cache the tokens are the positions behind those that it holds; their keys and values are added to
// it, and autograd must be off. Local.
#ifndef PLAIT_MODELS_ATTENTION_ATTENTION_H_
#define PLAIT_MODELS_ATTENTION_ATTENTION_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "models/block_model.h"
#include "parallel/dropout/dropout.h"

namespace plait::models {
class KeyValueCache;
}

namespace plait::attention {

struct AttentionOptions {
  bool causal = true;
  // By products and a softmax that keep the probabilities in memory, as dropout needs it.
  bool keeps_probabilities = false;
  std::optional<dropout::ProbabilityDropout> dropout = {};
  models::KeyValueCache* cache = nullptr;  // not owned
  std::int64_t layer = 0;                  // of the cache
  std::int64_t capacity = 0;               // positions that the cache may hold
  // Where ranks have parts of the sequences: without cache and kept probabilities.
  models::SequencePart sequence = {};
};

at::Tensor Attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const AttentionOptions& options = {});

}  // namespace plait::attention

#endif  // PLAIT_MODELS_ATTENTION_ATTENTION_H_
