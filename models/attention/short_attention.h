// Attention that holds all scores of a sequence: for short sequences on a processor, where the blocks of a
// flash kernel are so small that setting up their products costs more than computing them.
//
//   const AttentionSizes sizes = {.batch = 12, .heads = 4};
//   if (UsesShortAttention(product, sizes)) out = ShortAttention(product, sizes);
//
//   product   (batch * seq, 3 * heads * width): queries, keys, values side by side, as one linear layer
//             makes them
//   out       (batch * seq, heads * width): softmax(q k^T / sqrt(width)) v; causal: each query sees no later
//             key
//
// Recorded by autograd as one function, which keeps the product and the probabilities, (batch * heads, seq,
// seq). Head by head with kernels of our own (kernels/head.h) where the processor has them, on as many
// threads as at::set_num_threads says; else by batched products. A sequence has the same bits in any batch
// with the former. Vaswani et al., arXiv:1706.03762, equation 1. Once differentiable. Local.
#ifndef PLAIT_MODELS_ATTENTION_SHORT_ATTENTION_H_
#define PLAIT_MODELS_ATTENTION_SHORT_ATTENTION_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace plait::attention {

struct AttentionSizes {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  bool causal = true;
  std::int64_t key_heads = 0;  // divides `heads`; 0: as many

  std::int64_t KeyHeads() const { return key_heads == 0 ? heads : key_heads; }
};

// Rotary positions (Su et al., arXiv:2104.09864): at least (seq, width) each, of float32, contiguous; x becomes
// cosines x + sines (x with the numbers of each pair of neighbours swapped).
struct RotaryTables {
  at::Tensor cosines, sines;
};

// Whether this is the quickest way: a processor, at most kLongestShortSequence positions, and own kernels or
// a half-precision type (LibTorch's flash kernel sets oneDNN up anew for each product in those).
constexpr std::int64_t kLongestShortSequence = 256;
bool UsesShortAttention(const at::Tensor& product, const AttentionSizes& sizes);

// Any floating type on any device.
at::Tensor ShortAttention(const at::Tensor& product, const AttentionSizes& sizes);

}  // namespace plait::attention

#endif  // PLAIT_MODELS_ATTENTION_SHORT_ATTENTION_H_
