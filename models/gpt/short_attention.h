// Causal attention that holds all scores of a sequence: for short sequences on a processor, where a few
// batched products cost less than the many small ones of a blocked (flash) kernel.
//
//   at::Tensor out = ShortCausalAttention(product, {.batch = 12, .heads = 4});
//
//   product   (batch * seq, 3 * heads * width): queries, keys, values side by side, as one linear layer
//             makes them
//   out       (batch * seq, heads * width): softmax(q k^T / sqrt(width)) v, each query seeing no later key
//
// Recorded by autograd as one function, which keeps q, k, v and the probabilities, (batch * heads, seq, seq).
// Vaswani et al., arXiv:1706.03762, equation 1. Once differentiable. Local.
#ifndef PLAIT_MODELS_GPT_SHORT_ATTENTION_H_
#define PLAIT_MODELS_GPT_SHORT_ATTENTION_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace plait::gpt {

struct AttentionSizes {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
};

at::Tensor ShortCausalAttention(const at::Tensor& product, const AttentionSizes& sizes);

}  // namespace plait::gpt

#endif  // PLAIT_MODELS_GPT_SHORT_ATTENTION_H_
