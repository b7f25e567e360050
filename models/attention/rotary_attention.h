// Attention of short sequences with rotary positions and groups of query heads that share keys and values, on a
// processor that has kernels for it (kernels/head.h).
//
//   const AttentionSizes sizes = {.batch = 4, .heads = 16, .key_heads = 4};
//   if (UsesRotaryAttention(query, sizes, tables)) out = RotaryAttention(query, key, value, sizes, tables);
//
//   query        (batch seq, heads width); numbers of a row lie together, or are copied
//   key, value   (batch seq, key_heads width); query heads head group to head group + group - 1 look at key head `head`
//   returned     as query: softmax(q k^T / sqrt(width)) v of rotated queries and keys
//
// Recorded by autograd as one function, which keeps the rotated queries and keys, the values and the probabilities,
// (batch heads, seq, seq). A sequence has the same bits in any batch and on any number of threads. In bfloat16 rotated
// queries and keys, probabilities and results are rounded. Once differentiable. Local.
#ifndef PLAIT_MODELS_ATTENTION_ROTARY_ATTENTION_H_
#define PLAIT_MODELS_ATTENTION_ROTARY_ATTENTION_H_

#include <ATen/core/Tensor.h>

#include "models/attention/short_attention.h"

namespace plait::attention {

// Whether there are kernels for it: float32 or bfloat16, tables of float32, at most kLongestShortSequence positions.
bool UsesRotaryAttention(const at::Tensor& query, const AttentionSizes& sizes, const RotaryTables& tables);

at::Tensor RotaryAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const AttentionSizes& sizes, const RotaryTables& tables);

}  // namespace plait::attention

#endif  // PLAIT_MODELS_ATTENTION_ROTARY_ATTENTION_H_
