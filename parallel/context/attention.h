// Attention of sequences that are split over ranks.
//
//   at::Tensor out = Attention(axis, query, key, value, {.causal = true, .length = 1000});
//
//   query          (batch, heads, seq of this rank, width): of the tokens ContextAxis::Positions
//   key, value     (batch, kv heads, seq of this rank, width), kv heads divides heads: query head h looks at key
//                  head h / (heads / kv heads)
//   result         as query: softmax(q k^T / sqrt(width)) v over the whole sequence; causal: each query sees no
//                  later key
//
// Ring (Liu et al., arXiv:2310.01889; zig-zag split after Brandon et al., arXiv:2311.09431): keys and values go
// round, each rank attends to those that it has and merges the parts by their log-sum-exp, as Milakov and
// Gimelshein's online softmax (arXiv:1805.02867). A part of the scores is in memory at a time, of a chunk of
// queries and a rank's keys; the backward computes it again. A rank sends its keys and values N - 1 times in the
// forward, and as often in the backward, with their gradients. The next keys travel during a part's computation.
// Ulysses (Jacobs et al., arXiv:2309.14509): an all-to-all gives each rank whole sequences of some heads, another
// one takes the result back; heads are a multiple of the ranks. Keys of fewer heads than ranks travel once per
// query head.
//
// Sums are in float32 for half-precision types. Recorded by autograd, once differentiable. Collective along the
// axis; a group of one is LibTorch's operator.
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
  // Of the whole sequence without padding: later positions are no keys. 0: nothing is padded.
  std::int64_t length = 0;
  // Of the probabilities, whose masks are those of the whole sequence. Ulysses keeps the probabilities then.
  std::optional<dropout::ProbabilityDropout> dropout = {};
};

at::Tensor Attention(const ContextAxis& axis, const at::Tensor& query, const at::Tensor& key,
                     const at::Tensor& value, const AttentionOptions& options = {});

}  // namespace plait::context_parallel

#endif  // PLAIT_PARALLEL_CONTEXT_ATTENTION_H_
