#include "parallel/moe/reference_experts.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <optional>
#include <vector>

namespace plait::moe {
namespace {

at::Tensor Activated(Activation f, const at::Tensor& x) {
  if (f == Activation::kRelu) return at::relu(x);
  if (f == Activation::kSilu) return at::silu(x);
  return at::gelu(x, f == Activation::kGelu ? "none" : "tanh");
}

// unbind: the backward of a select per expert would allocate a gradient of the size of all experts for each.
std::vector<at::Tensor> ByExpert(const at::Tensor& weights, std::size_t experts) {
  return weights.defined() ? weights.unbind(0) : std::vector<at::Tensor>(experts);
}

std::optional<at::Tensor> IfDefined(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional<at::Tensor>(tensor) : std::nullopt;
}

std::vector<at::Tensor*> All(ExpertWeights& w) {
  return {&w.in, &w.in_bias, &w.gate, &w.gate_bias, &w.out, &w.out_bias};
}

}  // namespace

at::Tensor ReferenceForward(Activation activation, const ExpertWeights& w, const at::Tensor& rows,
                            absl::Span<const std::int64_t> offsets) {
  const std::size_t experts = offsets.size() - 1;
  const auto in = ByExpert(w.in, experts), in_bias = ByExpert(w.in_bias, experts),
             gate = ByExpert(w.gate, experts), gate_bias = ByExpert(w.gate_bias, experts),
             out = ByExpert(w.out, experts), out_bias = ByExpert(w.out_bias, experts);
  std::vector<at::Tensor> outputs = {rows.narrow(0, 0, 0)};
  for (std::size_t e = 0; e < experts; ++e) {
    const at::Tensor x = rows.narrow(0, offsets[e], offsets[e + 1] - offsets[e]);
    at::Tensor hidden = at::linear(x, in[e], IfDefined(in_bias[e]));
    hidden = w.gate.defined()
                 ? Activated(activation, at::linear(x, gate[e], IfDefined(gate_bias[e]))) * hidden
                 : Activated(activation, hidden);
    outputs.push_back(at::linear(hidden, out[e], IfDefined(out_bias[e])));
  }
  return at::cat(outputs);
}

ExpertGradients ReferenceBackward(Activation activation, const ExpertWeights& weights, const at::Tensor& rows,
                                  absl::Span<const std::int64_t> offsets, const at::Tensor& gradient,
                                  const WantedGradients& wanted) {
  const at::AutoGradMode recorded(true);
  ExpertGradients leaves = {rows.detach().requires_grad_(), weights};
  std::vector<at::Tensor> inputs = {leaves.rows};
  for (at::Tensor* weight : All(leaves.weights)) {
    if (!weight->defined()) continue;
    *weight = weight->detach().requires_grad_();
    inputs.push_back(*weight);
  }
  const at::Tensor y = ReferenceForward(activation, leaves.weights, leaves.rows, offsets);
  std::vector<at::Tensor> found = torch::autograd::grad({y}, inputs, {gradient}, {}, false, true);
  ExpertGradients gradients;
  std::size_t next = 1;
  if (wanted.rows) gradients.rows = found[0];
  const std::vector<at::Tensor*> to = All(gradients.weights), from = All(leaves.weights);
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (from[i]->defined() && wanted.weights) *to[i] = found[next];
    next += from[i]->defined() ? 1 : 0;
  }
  return gradients;
}

}  // namespace plait::moe
