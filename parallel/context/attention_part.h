// Attention of some queries to some keys, as a part of attention over all keys. Private to parallel/context.
#ifndef PLAIT_PARALLEL_CONTEXT_ATTENTION_PART_H_
#define PLAIT_PARALLEL_CONTEXT_ATTENTION_PART_H_

#include <ATen/core/Tensor.h>

#include <optional>

#include "parallel/dropout/dropout.h"

namespace plait::context_parallel {

// Tensors are (batch, heads, seq, width), except positions, (seq) of int64, and log_sum, (batch, heads, seq). `keys`
// and `values` have as many heads as the queries.
struct PartInput {
  at::Tensor queries, keys, values;
  // If true, a query attends to its own and earlier keys: queries and keys have the same, ascending positions.
  // Otherwise every query attends to all keys.
  bool causal = true;
  at::Tensor query_positions, key_positions;                // for dropout
  std::int64_t length = 0;                                  // of the whole sequence, for dropout
  std::optional<dropout::ProbabilityDropout> dropout = {};  // of the whole softmax
};

struct PartOutput {
  at::Tensor out;      // softmax over these keys, times values
  at::Tensor log_sum;  // log of the sum of exponentials of the scores; float32, or float64 for float64 inputs
};

// Uses LibTorch's fused kernel on CPUs, which does not materialize probabilities; with dropout or on other devices,
// matrix products.
PartOutput AttendToPart(const PartInput& input);

// Merges a part into `sum`, the result over the keys so far; initially zeros, with log_sum -inf.
void Merge(const PartOutput& part, PartOutput& sum);

struct PartGradients {
  at::Tensor queries, keys, values;
};
// Gradients of one part; `whole` is the result over all keys. Dao et al., arXiv:2205.14135, appendix B.2.
PartGradients GradientsOfPart(const PartInput& input, const at::Tensor& out_gradient,
                              const PartOutput& whole);

// Throws in a backward pass that autograd records (create_graph): second derivatives would lack terms.
void CheckOnce();

}  // namespace plait::context_parallel

#endif  // PLAIT_PARALLEL_CONTEXT_ATTENTION_PART_H_
