#include "parallel/moe/experts.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>

namespace plait::moe {
namespace {
at::Tensor Act(Activation a, const at::Tensor& x) { return a == Activation::kRelu ? at::relu(x) : at::gelu(x); }
at::Tensor ActBackward(Activation a, const at::Tensor& g, const at::Tensor& x) {
  return a == Activation::kRelu ? g * x.gt(0) : at::gelu_backward(g, x);
}
}  // namespace
at::Tensor ForwardExperts(const ExpertsOptions& options, const ExpertWeights& w, const at::Tensor& rows,
                          absl::Span<const std::int64_t> offsets, SavedExperts* saved) {
  at::Tensor pre = at::empty({rows.size(0), w.in.size(1)}, rows.options()), y = at::empty(rows.sizes(), rows.options());
  for (std::size_t e = 0; e + 1 < offsets.size(); ++e) {
    const auto n = offsets[e + 1] - offsets[e];
    at::Tensor p = at::matmul(rows.narrow(0, offsets[e], n), w.in[e].t());
    if (w.in_bias.defined()) p = p + w.in_bias[e];
    at::Tensor o = at::matmul(Act(options.activation, p), w.out[e].t());
    if (w.out_bias.defined()) o = o + w.out_bias[e];
    pre.narrow(0, offsets[e], n).copy_(p);
    y.narrow(0, offsets[e], n).copy_(o);
  }
  if (saved) *saved = {rows, pre, {}};
  return y;
}
ExpertGradients BackwardExperts(const ExpertsOptions& options, const ExpertWeights& w, const SavedExperts& saved,
                                absl::Span<const std::int64_t> offsets, const at::Tensor& gradient,
                                const WantedGradients& wanted) {
  ExpertGradients g;
  g.rows = at::empty(saved.rows.sizes(), gradient.options());
  g.weights.in = at::zeros(w.in.sizes(), gradient.options());
  g.weights.out = at::zeros(w.out.sizes(), gradient.options());
  if (w.in_bias.defined()) g.weights.in_bias = at::zeros(w.in_bias.sizes(), gradient.options());
  if (w.out_bias.defined()) g.weights.out_bias = at::zeros(w.out_bias.sizes(), gradient.options());
  for (std::size_t e = 0; e + 1 < offsets.size(); ++e) {
    const auto n = offsets[e + 1] - offsets[e];
    const at::Tensor dy = gradient.narrow(0, offsets[e], n), p = saved.in.narrow(0, offsets[e], n), x = saved.rows.narrow(0, offsets[e], n);
    g.weights.out[e].copy_(at::matmul(dy.t(), Act(options.activation, p)));
    const at::Tensor dp = ActBackward(options.activation, at::matmul(dy, w.out[e]), p);
    g.weights.in[e].copy_(at::matmul(dp.t(), x));
    if (w.in_bias.defined()) g.weights.in_bias[e].copy_(dp.sum(0));
    if (w.out_bias.defined()) g.weights.out_bias[e].copy_(dy.sum(0));
    g.rows.narrow(0, offsets[e], n).copy_(at::matmul(dp, w.in[e]));
  }
  if (!wanted.weights) g.weights = {};
  if (!wanted.rows) g.rows = at::Tensor();
  return g;
}
}  // namespace plait::moe
