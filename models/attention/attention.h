// Attention by LibTorch's operator, with grouped queries and a cache.
//
//   at::Tensor out = Attention(query, key, value);
//   at::Tensor out = Attention(query, key, value, {.cache = &cache, .layer = 3, .capacity = 2048});
//
//   query          (batch, heads, seq, width)
//   key, value     (batch, kv heads, seq, width), kv heads divides heads: query head h attends to key head
//                  h / (heads / kv heads) (Ainslie et al., 2023)
//   result         (batch, heads, seq, width): softmax(q k^T / sqrt(width)) v; causal: each query sees no later key
//
// With a cache the tokens continue the positions that it holds; their keys and values are appended to it, and
// gradients must be disabled. Local, unless `sequence` has an axis: then collective over it.
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
  // Computes softmax and products separately, with all probabilities in memory, as dropout does; ignored if
  // `sequence` has an axis.
  bool keeps_probabilities = false;
  std::optional<dropout::ProbabilityDropout> dropout = {};
  models::KeyValueCache* cache = nullptr;  // not owned
  std::int64_t layer = 0;                  // of the cache
  std::int64_t capacity = 0;               // most positions that the cache may hold
  // Context parallelism (parallel/context/attention.h); not together with a cache.
  models::SequencePart sequence = {};
};

at::Tensor Attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const AttentionOptions& options = {});

}  // namespace plait::attention

#endif  // PLAIT_MODELS_ATTENTION_ATTENTION_H_
