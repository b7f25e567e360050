// Attention with all scores of a sequence in memory: for short sequences on a CPU, where the blocks of a flash
// kernel are so small that setting up their products costs more than computing them.
//
//   const AttentionSizes sizes = {.batch = 12, .heads = 4};
//   if (UsesShortAttention(product, sizes)) out = ShortAttention(product, sizes);
//
//   product   (batch * seq, 3 * heads * width): queries, keys and values side by side, the output of one
//             fused linear layer
//   out       (batch * seq, heads * width): softmax(q k^T / sqrt(width)) v; causal: each query sees no later
//             key
//
// Recorded by autograd as one function, which saves the product and the probabilities, (batch * heads, seq,
// seq). Head by head with own kernels (kernels/head.h) where the CPU has them, on at::get_num_threads() threads;
// else by batched products. With own kernels a sequence's results are bitwise identical in any batch. Vaswani et
// al., arXiv:1706.03762, equation 1. Once differentiable. Local.
#ifndef PLAIT_MODELS_ATTENTION_SHORT_ATTENTION_H_
#define PLAIT_MODELS_ATTENTION_SHORT_ATTENTION_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace plait::attention {

struct AttentionSizes {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  bool causal = true;
  std::int64_t key_heads = 0;  // divides `heads`; 0: equal to `heads`. Read by RotaryAttention only

  std::int64_t KeyHeads() const { return key_heads == 0 ? heads : key_heads; }
};

// Tables of rotary positions (Su et al., arXiv:2104.09864): contiguous float32, at least (seq, width) each. x becomes
// cosines * x + sines * (x with the elements of each pair (2i, 2i + 1) swapped), so a pair has (cos, cos) and
// (-sin, sin).
struct RotaryTables {
  at::Tensor cosines, sines;
};

constexpr std::int64_t kLongestShortSequence = 256;  // positions
// Whether ShortAttention is the fastest choice: on a CPU, for at most kLongestShortSequence positions, with own kernels
// or a half-precision dtype (for which LibTorch's flash kernel sets up oneDNN for every product). `batch` > 0.
bool UsesShortAttention(const at::Tensor& product, const AttentionSizes& sizes);

// Works for any floating dtype on any device. Aborts if `product` does not fit `sizes`.
at::Tensor ShortAttention(const at::Tensor& product, const AttentionSizes& sizes);

}  // namespace plait::attention

#endif  // PLAIT_MODELS_ATTENTION_SHORT_ATTENTION_H_
