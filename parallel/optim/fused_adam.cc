#include "parallel/optim/fused_adam.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <numeric>
#include <utility>

namespace plait::parallel {
namespace {

constexpr bool kAmsgrad = false;
constexpr bool kMaximize = false;

void Adam(at::TensorList values, at::TensorList gradients, at::TensorList first, at::TensorList second,
          at::TensorList steps, const AdamOptions& o) {
  at::_fused_adam_(values, gradients, first, second, {}, steps, o.lr, o.beta1, o.beta2, o.weight_decay,
                   o.epsilon, kAmsgrad, kMaximize);
}

void AdamW(at::TensorList values, at::TensorList gradients, at::TensorList first, at::TensorList second,
           at::TensorList steps, const AdamOptions& o) {
  at::_fused_adamw_(values, gradients, first, second, {}, steps, o.lr, o.beta1, o.beta2, o.weight_decay,
                    o.epsilon, kAmsgrad, kMaximize);
}

}  // namespace

FusedAdam::FusedAdam(std::vector<at::Tensor> parameters, const AdamOptions& options)
    : parameters_(std::move(parameters)), options_(options) {
  for (const at::Tensor& parameter : parameters_) {
    first_.push_back(at::zeros_like(parameter.detach()));
    second_.push_back(at::zeros_like(parameter.detach()));
  }
  all_.resize(parameters_.size());
  std::iota(all_.begin(), all_.end(), std::size_t{0});
  if (!parameters_.empty())
    step_ = at::zeros({}, parameters_[0].options().dtype(at::kFloat).requires_grad(false));
}

void FusedAdam::Step() {
  BeginStep();
  Apply(all_);
}

void FusedAdam::BeginStep() {
  const at::NoGradGuard no_grad;
  ++steps_;
  if (step_.defined()) step_.fill_(static_cast<double>(steps_));
}

void FusedAdam::Apply(absl::Span<const std::size_t> parameters) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> values, gradients, first, second;
  for (const std::size_t i : parameters) {
    if (!parameters_[i].grad().defined()) continue;
    values.push_back(parameters_[i]);
    gradients.push_back(parameters_[i].grad());
    first.push_back(first_[i]);
    second.push_back(second_[i]);
  }
  if (values.empty()) return;
  const std::vector<at::Tensor> steps(values.size(), step_);
  const auto step = options_.decoupled_weight_decay ? AdamW : Adam;
  step(values, gradients, first, second, steps, options_);
}

void FusedAdam::ClearGradients() {
  for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
}

}  // namespace plait::parallel
