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
  // A query sees its own and earlier keys: there are as many keys as queries, of the same positions, which ascend.
  // Otherwise every query sees all keys.
  bool causal = true;
  at::Tensor query_positions, key_positions;                // for dropout
  std::int64_t length = 0;                                  // of the whole sequence, for dropout
  std::optional<dropout::ProbabilityDropout> dropout = {};  // of the whole softmax
};

struct PartOutput {
  at::Tensor out;      // softmax over these keys, times values
  at::Tensor log_sum;  // of the exponentials of their scores; float32, or float64 for inputs of float64
};

// By LibTorch's fused kernel on processors, which keeps no probabilities; with dropout and on other devices by products.
PartOutput AttendToPart(const PartInput& input);

// Adds a part to what queries have so far, zeros and -inf at first: both become those of all keys seen.
void Merge(const PartOutput& part, PartOutput& sum);

struct PartGradients {
  at::Tensor queries, keys, values;
};
// `whole`: of all keys. Dao et al., arXiv:2205.14135, appendix B.2.
PartGradients GradientsOfPart(const PartInput& input, const at::Tensor& out_gradient,
                              const PartOutput& whole);

}  // namespace plait::context_parallel

#endif  // PLAIT_PARALLEL_CONTEXT_ATTENTION_PART_H_
