#include "models/attention/short_attention.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <limits>

#include "base/check.h"
#include "models/attention/head_passes.h"

namespace plait::attention {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// -inf where a key is later than the query: (1, seq, seq).
at::Tensor LaterKeys(std::int64_t seq, const at::TensorOptions& options) {
  return at::full({1, seq, seq}, -std::numeric_limits<double>::infinity(), options).triu(1);
}

// With LibTorch's batched products.
class BatchedAttention : public torch::autograd::Function<BatchedAttention> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& product, std::int64_t batch,
                            std::int64_t heads, bool causal) {
    const std::int64_t seq = product.size(0) / batch, width = product.size(1) / (3 * heads);
    const at::Tensor parts = product.view({batch, seq, 3, heads, width})
                                 .permute({2, 0, 3, 1, 4})
                                 .reshape({3, batch * heads, seq, width});
    const double scale = 1 / std::sqrt(static_cast<double>(width));
    const at::Tensor start =
        causal ? LaterKeys(seq, product.options()) : at::zeros({1, 1, 1}, product.options());
    const at::Tensor scores =
        at::baddbmm(start, parts[0], parts[1].transpose(1, 2), /*beta=*/1, /*alpha=*/scale);
    const at::Tensor probabilities = at::_softmax(scores, -1, /*half_to_float=*/false);
    context->save_for_backward({parts, probabilities});
    context->saved_data["heads"] = heads;
    return at::bmm(probabilities, parts[2])
        .view({batch, heads, seq, width})
        .transpose(1, 2)
        .reshape({batch * seq, heads * width});
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(), "Attention: its gradient cannot be differentiated again");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &parts = saved[0], &probabilities = saved[1];
    const std::int64_t heads = context->saved_data["heads"].toInt();
    const std::int64_t batch = parts.size(1) / heads, seq = parts.size(2), width = parts.size(3);
    const double scale = 1 / std::sqrt(static_cast<double>(width));
    const at::Tensor out =
        gradients[0].reshape({batch, seq, heads, width}).transpose(1, 2).reshape({batch * heads, seq, width});
    const at::Tensor of_parts = at::empty_like(parts);
    at::Tensor query = of_parts[0], key = of_parts[1], value = of_parts[2];
    at::bmm_out(value, probabilities.transpose(1, 2), out);
    const at::Tensor of_scores = at::_softmax_backward_data(at::bmm(out, parts[2].transpose(1, 2)),
                                                            probabilities, -1, probabilities.scalar_type());
    at::baddbmm_out(query, query, of_scores, parts[1], /*beta=*/0, /*alpha=*/scale);
    at::baddbmm_out(key, key, of_scores.transpose(1, 2), parts[0], /*beta=*/0, /*alpha=*/scale);
    return {of_parts.view({3, batch, heads, seq, width})
                .permute({1, 3, 0, 2, 4})
                .reshape({batch * seq, 3 * heads * width}),
            at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

std::int64_t Positions(const at::Tensor& product, const AttentionSizes& sizes) {
  return product.size(0) / sizes.batch;
}

// Views of the queries, keys and values in a product, or in its gradient.
HeadRows PartsOf(const at::Tensor& product) {
  const std::int64_t width = product.size(1) / 3;
  return {product.narrow(1, 0, width), product.narrow(1, width, width), product.narrow(1, 2 * width, width)};
}

// With own kernels.
class OwnAttention : public torch::autograd::Function<OwnAttention> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& product, std::int64_t batch,
                            std::int64_t heads, bool causal) {
    const AttentionSizes sizes{.batch = batch, .heads = heads, .causal = causal};
    const std::int64_t seq = Positions(product, sizes);
    const at::Tensor dense = product.contiguous();
    const at::Tensor probabilities = at::empty({batch * heads, seq, seq}, product.options());
    const at::Tensor out = at::empty({product.size(0), product.size(1) / 3}, product.options());
    context->save_for_backward({dense, probabilities});
    context->saved_data["batch"] = batch;
    context->saved_data["heads"] = heads;
    context->saved_data["causal"] = causal;
    ForwardHeads(PartsOf(dense), sizes, probabilities, out);
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(), "Attention: its gradient cannot be differentiated again");
    const variable_list saved = context->get_saved_variables();
    const AttentionSizes sizes{.batch = context->saved_data["batch"].toInt(),
                               .heads = context->saved_data["heads"].toInt(),
                               .causal = context->saved_data["causal"].toBool()};
    const at::Tensor of_out = gradients[0].contiguous(), of_product = at::empty_like(saved[0]);
    BackwardHeads(PartsOf(saved[0]), sizes, saved[1], of_out, PartsOf(of_product));
    return {of_product, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

bool UsesShortAttention(const at::Tensor& product, const AttentionSizes& sizes) {
  if (!(product.is_cpu() || product.is_meta()) || sizes.batch < 1) return false;
  if (Positions(product, sizes) > kLongestShortSequence) return false;
  return HasOwnKernels(product) || product.scalar_type() == at::kBFloat16 ||
         product.scalar_type() == at::kHalf;
}

at::Tensor ShortAttention(const at::Tensor& product, const AttentionSizes& sizes) {
  PLAIT_CHECK(product.dim() == 2 && sizes.batch > 0 && product.size(0) % sizes.batch == 0 &&
              product.size(1) % (3 * sizes.heads) == 0)
      << "queries, keys and values of shape " << product.sizes() << " for " << sizes.batch
      << " sequences and " << sizes.heads << " heads";
  if (HasOwnKernels(product)) return OwnAttention::apply(product, sizes.batch, sizes.heads, sizes.causal);
  return BatchedAttention::apply(product, sizes.batch, sizes.heads, sizes.causal);
}

}  // namespace plait::attention
