#include "parallel/context/fused_attention.h"

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/csrc/autograd/custom_function.h>

namespace plait::context_parallel {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// (batch, heads, seq, width) with the memory layout (batch, seq, heads, width), as the kernel's gradients have it.
at::Tensor GradientLike(const at::Tensor& x) {
  return at::empty({x.size(0), x.size(2), x.size(1), x.size(3)}, x.options()).transpose(1, 2);
}

// Allocates the tensors that the kernel returns and saves, without values.
struct SizesOfFusedAttention : torch::autograd::Function<SizesOfFusedAttention> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& value) {
    const auto [out, log_sum] = FusedForward(query, key, value, /*causal=*/false);
    context->save_for_backward({query, key, value, out, log_sum});
    return out;
  }
  static variable_list backward(AutogradContext* context, const variable_list&) {
    const variable_list saved = context->get_saved_variables();
    return {GradientLike(saved[0]), GradientLike(saved[1]), GradientLike(saved[2])};
  }
};

}  // namespace

at::Tensor FusedAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                          const std::optional<at::Tensor>& mask, bool causal) {
  if (query.is_meta()) return SizesOfFusedAttention::apply(query, key, value);
  return at::scaled_dot_product_attention(query, key, value, mask, 0, causal);
}

std::tuple<at::Tensor, at::Tensor> FusedForward(const at::Tensor& query, const at::Tensor& key,
                                                const at::Tensor& value, bool causal) {
  if (!query.is_meta()) {
    return at::_scaled_dot_product_flash_attention_for_cpu(query, key, value, /*dropout_p=*/0, causal);
  }
  const bool wide = query.scalar_type() == at::kDouble;
  const at::Tensor log_sum = at::empty({query.size(0), query.size(2), query.size(1)},
                                       query.options().dtype(wide ? at::kDouble : at::kFloat));
  return {at::empty_like(query), log_sum.transpose(1, 2)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> FusedBackward(const at::Tensor& out_gradient,
                                                             const at::Tensor& query, const at::Tensor& key,
                                                             const at::Tensor& value, const at::Tensor& out,
                                                             const at::Tensor& log_sum, bool causal) {
  if (query.is_meta()) return {GradientLike(query), GradientLike(key), GradientLike(value)};
  const at::ScalarType type = query.scalar_type();
  return at::_scaled_dot_product_flash_attention_for_cpu_backward(
      out_gradient.to(type), query, key, value, out.to(type), log_sum, /*dropout_p=*/0, causal);
}

at::Tensor PerQueryHead(const at::Tensor& heads, std::int64_t count) {
  return heads.size(1) == count ? heads : heads.repeat_interleave(count / heads.size(1), 1);
}

}  // namespace plait::context_parallel
