#include "models/attention/short_attention.h"

#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/parallel_for.h"
#include "models/attention/kernels/head.h"

namespace plait::attention {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// -inf where a key is later than the query: (1, seq, seq).
at::Tensor LaterKeys(std::int64_t seq, const at::TensorOptions& options) {
  return at::full({1, seq, seq}, -std::numeric_limits<double>::infinity(), options).triu(1);
}

// By batched products of LibTorch.
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

bool HasOwnKernels(const at::Tensor& product) {
  if (!product.is_cpu() && !product.is_meta()) return false;
  if (product.scalar_type() == at::kFloat) return UsableHeads<float>() != nullptr;
  return product.scalar_type() == at::kBFloat16 && UsableHeads<BFloat16>() != nullptr;
}

std::int64_t Positions(const at::Tensor& product, const AttentionSizes& sizes) {
  return product.size(0) / sizes.batch;
}

// A score is a product of rows, an exponential, and part of the sum of values.
constexpr std::int64_t kNumbersOfScore = 4;

// Calls body(sequence, head) for all, on LibTorch's threads.
template <typename Body>
void ForHeads(const AttentionSizes& sizes, std::int64_t seq, const Body& body) {
  ParallelFor(sizes.batch * sizes.heads, kNumbersOfScore * seq * seq,
              [&](std::int64_t first, std::int64_t last) {
                for (std::int64_t i = first; i < last; ++i) body(i / sizes.heads, i % sizes.heads);
              });
}

// Where queries (part 0), keys (1), values (2) of a head lie in a product or its gradient, or its results in
// out (of 1 part).
template <typename T>
struct HeadRows {
  T* data;
  std::int64_t seq, heads, width, parts;
  Rows<T> Of(std::int64_t sequence, std::int64_t part, std::int64_t head) const {
    const std::int64_t stride = parts * heads * width;
    return {data + sequence * seq * stride + (part * heads + head) * width, stride};
  }
};

template <typename T>
void ForwardHeads(const at::Tensor& product, const AttentionSizes& sizes, const at::Tensor& probabilities,
                  const at::Tensor& out) {
  if (product.is_meta()) return;
  const std::int64_t seq = Positions(product, sizes), width = out.size(1) / sizes.heads;
  const HeadRows<const T> from{static_cast<const T*>(product.const_data_ptr()), seq, sizes.heads, width, 3};
  const HeadRows<T> to{static_cast<T*>(out.mutable_data_ptr()), seq, sizes.heads, width, 1};
  T* of_head = static_cast<T*>(probabilities.mutable_data_ptr());
  ForHeads(sizes, seq, [&](std::int64_t sequence, std::int64_t head) {
    UsableHeads<T>()->forward({.seq = seq,
                               .width = width,
                               .causal = sizes.causal,
                               .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(width))),
                               .query = from.Of(sequence, 0, head),
                               .key = from.Of(sequence, 1, head),
                               .value = from.Of(sequence, 2, head),
                               .out = to.Of(sequence, 0, head),
                               .probabilities = of_head + (sequence * sizes.heads + head) * seq * seq});
  });
}

template <typename T>
void BackwardHeads(const at::Tensor& product, const AttentionSizes& sizes, const at::Tensor& probabilities,
                   const at::Tensor& of_out, const at::Tensor& of_product) {
  if (product.is_meta()) return;
  const std::int64_t seq = Positions(product, sizes), width = of_out.size(1) / sizes.heads;
  const HeadRows<const T> from{static_cast<const T*>(product.const_data_ptr()), seq, sizes.heads, width, 3};
  const HeadRows<const T> gradient{static_cast<const T*>(of_out.const_data_ptr()), seq, sizes.heads, width,
                                   1};
  const HeadRows<T> to{static_cast<T*>(of_product.mutable_data_ptr()), seq, sizes.heads, width, 3};
  const T* of_head = static_cast<const T*>(probabilities.const_data_ptr());
  ForHeads(sizes, seq, [&](std::int64_t sequence, std::int64_t head) {
    UsableHeads<T>()->backward({.seq = seq,
                                .width = width,
                                .causal = sizes.causal,
                                .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(width))),
                                .query = from.Of(sequence, 0, head),
                                .key = from.Of(sequence, 1, head),
                                .value = from.Of(sequence, 2, head),
                                .probabilities = of_head + (sequence * sizes.heads + head) * seq * seq,
                                .of_out = gradient.Of(sequence, 0, head),
                                .of_query = to.Of(sequence, 0, head),
                                .of_key = to.Of(sequence, 1, head),
                                .of_value = to.Of(sequence, 2, head)});
  });
}

// By own kernels.
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
    product.scalar_type() == at::kFloat ? ForwardHeads<float>(dense, sizes, probabilities, out)
                                        : ForwardHeads<BFloat16>(dense, sizes, probabilities, out);
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const AttentionSizes sizes{.batch = context->saved_data["batch"].toInt(),
                               .heads = context->saved_data["heads"].toInt(),
                               .causal = context->saved_data["causal"].toBool()};
    const at::Tensor of_out = gradients[0].contiguous(), of_product = at::empty_like(saved[0]);
    of_out.scalar_type() == at::kFloat
        ? BackwardHeads<float>(saved[0], sizes, saved[1], of_out, of_product)
        : BackwardHeads<BFloat16>(saved[0], sizes, saved[1], of_out, of_product);
    return {of_product, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

bool UsesShortAttention(const at::Tensor& product, const AttentionSizes& sizes) {
  if (!(product.is_cpu() || product.is_meta()) || Positions(product, sizes) > kLongestShortSequence)
    return false;
  return HasOwnKernels(product) || product.scalar_type() == at::kBFloat16 ||
         product.scalar_type() == at::kHalf;
}

at::Tensor ShortAttention(const at::Tensor& product, const AttentionSizes& sizes) {
  PLAIT_CHECK(product.dim() == 2 && product.size(0) % sizes.batch == 0 &&
              product.size(1) % (3 * sizes.heads) == 0)
      << "queries, keys and values of shape " << product.sizes() << " for " << sizes.batch
      << " sequences and " << sizes.heads << " heads";
  if (HasOwnKernels(product)) return OwnAttention::apply(product, sizes.batch, sizes.heads, sizes.causal);
  return BatchedAttention::apply(product, sizes.batch, sizes.heads, sizes.causal);
}

}  // namespace plait::attention
