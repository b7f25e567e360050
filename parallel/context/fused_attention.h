// LibTorch's fused attention, which keeps no probabilities: at::scaled_dot_product_attention without dropout.
//
// On the meta device, where LibTorch computes it in parts that take other memory, a stand-in with the tensors of
// the processor's kernel. Recorded by autograd. Local.
#ifndef PLAIT_PARALLEL_CONTEXT_FUSED_ATTENTION_H_
#define PLAIT_PARALLEL_CONTEXT_FUSED_ATTENTION_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <tuple>

namespace plait::context_parallel {

// query, key, value (batch, heads, seq, width); mask: which keys a query sees, of boolean or added to the scores.
at::Tensor FusedAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                          const std::optional<at::Tensor>& mask, bool causal);

// The kernel itself, for processors and the meta device; not recorded. log_sum (batch, heads, seq): of the exponentials
// of a query's scores. Of several parts of the keys, each with the result of all parts, the gradients add up.
std::tuple<at::Tensor, at::Tensor> FusedForward(const at::Tensor& query, const at::Tensor& key,
                                                const at::Tensor& value, bool causal);
std::tuple<at::Tensor, at::Tensor, at::Tensor> FusedBackward(const at::Tensor& out_gradient,
                                                             const at::Tensor& query, const at::Tensor& key,
                                                             const at::Tensor& value, const at::Tensor& out,
                                                             const at::Tensor& log_sum, bool causal);

// (batch, key heads, seq, width) -> (batch, count, seq, width): each key head for the query heads that look at it.
at::Tensor PerQueryHead(const at::Tensor& heads, std::int64_t count);

}  // namespace plait::context_parallel

#endif  // PLAIT_PARALLEL_CONTEXT_FUSED_ATTENTION_H_
