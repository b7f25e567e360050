// Attention of one head over one sequence, all scores in memory: forward and backward. Causal:
//
//   p(i, j) = softmax over j <= i of scale q(i) . k(j);   out(i) = sum over j <= i of p(i, j) v(j)
//
// else over all j.
//
// Vaswani et al., arXiv:1706.03762, equation 1. Scores, exponentials and sums are in float32; probabilities
// and results are rounded to T, float or bfloat16. Products skip blocks of later keys.
#ifndef PLAIT_MODELS_ATTENTION_KERNELS_HEAD_H_
#define PLAIT_MODELS_ATTENTION_KERNELS_HEAD_H_

#include <cstdint>

#include "models/simd/bfloat16.h"

namespace plait::attention {

using simd::BFloat16;

// (seq, width): rows are contiguous, `stride` elements apart.
template <typename T>
struct Rows {
  T* data = nullptr;
  std::int64_t stride = 0;
};

// One key head and the `group` query heads that attend to it. From one query head to the next, queries, results and (in
// HeadBackward) their gradients are `width` elements apart, probabilities seq^2 elements.
template <typename T>
struct HeadForward {
  std::int64_t group = 1;
  std::int64_t seq = 0;
  std::int64_t width = 0;
  bool causal = true;
  float scale = 1;
  Rows<const T> query, key, value;
  Rows<T> out;
  // (seq, seq), for the backward pass; causal: undefined right of the block of the diagonal.
  T* probabilities = nullptr;
};

// Gradients of keys and values are sums over the group.
template <typename T>
struct HeadBackward {
  std::int64_t group = 1;
  std::int64_t seq = 0;
  std::int64_t width = 0;
  bool causal = true;
  float scale = 1;
  Rows<const T> query, key, value;
  const T* probabilities = nullptr;
  Rows<const T> of_out;
  Rows<T> of_query, of_key, of_value;  // written
};

// Rotary positions (Su et al., arXiv:2104.09864) for rows of heads, (rows, heads width): a pair (a, b) of neighbouring
// elements in row i, at position i mod seq, becomes (a cos - b sin, b cos + a sin); `back`: the inverse rotation.
template <typename T>
struct RotatedHeads {
  std::int64_t seq = 0;
  std::int64_t heads = 1;
  std::int64_t width = 0;  // even
  bool back = false;
  const float* cosines = nullptr;  // (seq, width): cos, cos for each pair
  const float* sines = nullptr;    // (seq, width): -sin, sin
  Rows<const T> x;
  Rows<T> out;  // may be x itself
};

template <typename T>
struct HeadKernels {
  const char* name = "";
  void (*forward)(const HeadForward<T>& head) = nullptr;
  void (*backward)(const HeadBackward<T>& head) = nullptr;
  // Rows [first, last).
  void (*rotate)(const RotatedHeads<T>& heads, std::int64_t first, std::int64_t last) = nullptr;
};

// The kernels of this CPU, or null where LibTorch's products are used (models/linear/kernels/product.h).
template <typename T>
const HeadKernels<T>* UsableHeads();

// Of one family each; to be called on a processor that has its instructions.
const HeadKernels<float>* Avx512Heads();
const HeadKernels<BFloat16>* Avx512PairHeads();

}  // namespace plait::attention

#endif  // PLAIT_MODELS_ATTENTION_KERNELS_HEAD_H_
