// LibTorch's fused attention, which does not materialize probabilities: at::scaled_dot_product_attention, no dropout.
//
// On the meta device, where LibTorch's decomposition would allocate other tensors, a stand-in with the tensors of the
// CPU kernel. Local.
#ifndef PLAIT_PARALLEL_CONTEXT_FUSED_ATTENTION_H_
#define PLAIT_PARALLEL_CONTEXT_FUSED_ATTENTION_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <tuple>

namespace plait::context_parallel {

// query, key, value (batch, heads, seq, width); mask: boolean, true where a query attends to a key, or floating-point,
// added to the scores; ignored on the meta device. Recorded by autograd.
at::Tensor FusedAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                          const std::optional<at::Tensor>& mask, bool causal);

// The kernel itself, for CPUs and the meta device; not recorded by autograd. Returns the output and log_sum (batch,
// heads, seq), the log-sum-exp of a query's scores. FusedBackward returns the gradients of query, key and value. If
// keys are processed in parts, calls with the `out` and `log_sum` of all keys give gradients that add up.
std::tuple<at::Tensor, at::Tensor> FusedForward(const at::Tensor& query, const at::Tensor& key,
                                                const at::Tensor& value, bool causal);
std::tuple<at::Tensor, at::Tensor, at::Tensor> FusedBackward(const at::Tensor& out_gradient,
                                                             const at::Tensor& query, const at::Tensor& key,
                                                             const at::Tensor& value, const at::Tensor& out,
                                                             const at::Tensor& log_sum, bool causal);

// (batch, key heads, seq, width) -> (batch, count, seq, width): repeats each key head for its query heads.
at::Tensor PerQueryHead(const at::Tensor& heads, std::int64_t count);

}  // namespace plait::context_parallel

#endif  // PLAIT_PARALLEL_CONTEXT_FUSED_ATTENTION_H_
