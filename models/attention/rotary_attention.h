// Attention of short sequences with rotary positions and grouped queries, on CPUs with own kernels (kernels/head.h).
//
//   const AttentionSizes sizes = {.batch = 4, .heads = 16, .key_heads = 4};
//   if (UsesRotaryAttention(query, sizes, tables)) out = RotaryAttention(query, key, value, sizes, tables);
//
//   query        (batch seq, heads width); copied unless rows are contiguous
//   key, value   (batch seq, key_heads width); query head h attends to key head h / (heads / key_heads)
//   returned     as query: softmax(q k^T / sqrt(width)) v of rotated queries and keys
//
// Recorded by autograd as one function, which saves the rotated queries and keys, the values and the probabilities,
// (batch heads, seq, seq). A sequence's results are bitwise identical in any batch and on any number of threads. In
// bfloat16 rotated queries and keys, probabilities and results are rounded. Once differentiable. Local. Aborts if
// shapes or dtypes do not fit, or if a table is not contiguous.
#ifndef PLAIT_MODELS_ATTENTION_ROTARY_ATTENTION_H_
#define PLAIT_MODELS_ATTENTION_ROTARY_ATTENTION_H_

#include <ATen/core/Tensor.h>

#include "models/attention/short_attention.h"

namespace plait::attention {

// Whether RotaryAttention can be called: the CPU has kernels, float32 or bfloat16, float32 tables, and at most
// kLongestShortSequence positions (and not an empty batch).
bool UsesRotaryAttention(const at::Tensor& query, const AttentionSizes& sizes, const RotaryTables& tables);

at::Tensor RotaryAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const AttentionSizes& sizes, const RotaryTables& tables);

}  // namespace plait::attention

#endif  // PLAIT_MODELS_ATTENTION_ROTARY_ATTENTION_H_
