// Attention of some queries to some keys, as a part of attention to all keys. Private to parallel/context.
#ifndef PLAIT_PARALLEL_CONTEXT_ATTENTION_PART_H_
#define PLAIT_PARALLEL_CONTEXT_ATTENTION_PART_H_

#include <ATen/core/Tensor.h>

#include <optional>

#include "parallel/dropout/dropout.h"

namespace plait::context_parallel {

// All of shape (batch, heads, seq, width), but positions (seq) of int64 and log_sum (batch, heads, seq). `keys`
// and `values` have the heads of the queries.
struct PartInput {
  at::Tensor queries, keys, values;
  // Of queries and keys. A query sees a key that is not later (causal) and before `length`.
  at::Tensor query_positions, key_positions;
  bool causal = true;
  std::int64_t length = 0;
  std::optional<dropout::ProbabilityDropout> dropout = {};  // of the whole softmax
};

struct PartOutput {
  at::Tensor out;      // softmax over these keys, times values; 0 where a query sees none
  at::Tensor log_sum;  // of the exponentials of their scores; -inf where a query sees none
};

// In float32 for half-precision inputs, else in their type.
PartOutput AttendToPart(const PartInput& input);

// Adds a part to what queries have so far: both become those of all keys seen.
void Merge(const PartOutput& part, PartOutput& sum);

struct PartGradients {
  at::Tensor queries, keys, values;
};
// `delta` (batch, heads, seq): the sum over the width of the whole output times its gradient. `log_sum`: of the
// whole. Dao et al., arXiv:2205.14135, appendix B.2.
PartGradients GradientsOfPart(const PartInput& input, const at::Tensor& out_gradient,
                              const at::Tensor& log_sum, const at::Tensor& delta);

}  // namespace plait::context_parallel

#endif  // PLAIT_PARALLEL_CONTEXT_ATTENTION_PART_H_
