// Attention over sequences that are split across ranks.
//
//   at::Tensor out = Attention(axis, query, key, value, {.causal = true, .length = 1000});
//
//   query          (batch, heads, local seq, width), of this rank's tokens (ContextAxis::Positions)
//   key, value     (batch, kv heads, local seq, width); kv heads divides heads: query head h uses key head
//                  h / (heads / kv heads)
//   returned       as query: softmax(q k^T / sqrt(width)) v over the whole sequence; if causal, a query attends to
//                  its own and earlier positions only
//
// Ring attention (Liu et al., arXiv:2310.01889; zig-zag split as in Brandon et al., arXiv:2311.09431): keys and values
// circulate; each rank attends to the keys it has and merges the partial results by their log-sum-exp, as in Milakov
// and Gimelshein's online softmax (arXiv:1805.02867). Scores are in memory for one rank's keys at a time, and are
// recomputed in the backward. On N ranks, a rank sends keys and values N - 1 times in the forward, and again in the
// backward, where their gradients travel as well. Sending overlaps with the computation of a part.
// Ulysses (Jacobs et al., arXiv:2309.14509): one all-to-all gives each rank whole sequences of some heads, another
// returns the result. The number of heads must be a multiple of the ranks; if that of kv heads is not, keys and values
// are repeated for every query head before they are sent.
//
// Accumulates in float32 for half-precision types. Recorded by autograd; differentiable once. Collective over the axis;
// with one rank, and without dropout, the same as at::scaled_dot_product_attention. The program ends on shapes that do
// not fit.
#ifndef PLAIT_PARALLEL_CONTEXT_ATTENTION_H_
#define PLAIT_PARALLEL_CONTEXT_ATTENTION_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "parallel/context/context_axis.h"
#include "parallel/dropout/dropout.h"

namespace plait::context_parallel {

struct AttentionOptions {
  bool causal = true;
  // Length of the whole sequence without padding; later positions are not used as keys. 0: no padding.
  std::int64_t length = 0;
  // Dropout of the attention probabilities, with masks that do not depend on the split. With it, Ulysses and a single
  // rank materialize the scores of whole sequences, in the forward and again in the backward.
  std::optional<dropout::ProbabilityDropout> dropout = {};
};

at::Tensor Attention(const ContextAxis& axis, const at::Tensor& query, const at::Tensor& key,
                     const at::Tensor& value, const AttentionOptions& options = {});

}  // namespace plait::context_parallel

#endif  // PLAIT_PARALLEL_CONTEXT_ATTENTION_H_
