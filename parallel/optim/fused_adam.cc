#include "parallel/optim/fused_adam.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <utility>

namespace plait::parallel {

FusedAdam::FusedAdam(std::vector<at::Tensor> parameters, const AdamOptions& options)
    : parameters_(std::move(parameters)), options_(options) {
  for (const at::Tensor& parameter : parameters_) {
    first_.push_back(at::zeros_like(parameter.detach()));
    second_.push_back(at::zeros_like(parameter.detach()));
  }
  if (!parameters_.empty())
    step_ = at::zeros({}, parameters_[0].options().dtype(at::kFloat).requires_grad(false));
}

void FusedAdam::Step() {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> values, gradients, first, second;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].grad().defined()) continue;
    values.push_back(parameters_[i]);
    gradients.push_back(parameters_[i].grad());
    first.push_back(first_[i]);
    second.push_back(second_[i]);
  }
  ++steps_;
  if (values.empty()) return;
  step_.fill_(static_cast<double>(steps_));
  const std::vector<at::Tensor> steps(values.size(), step_);
  constexpr bool kAmsgrad = false, kMaximize = false;
  if (options_.decoupled_weight_decay) {
    at::_fused_adamw_(values, gradients, first, second, {}, steps, options_.lr, options_.beta1,
                      options_.beta2, options_.weight_decay, options_.epsilon, kAmsgrad, kMaximize);
  } else {
    at::_fused_adam_(values, gradients, first, second, {}, steps, options_.lr, options_.beta1, options_.beta2,
                     options_.weight_decay, options_.epsilon, kAmsgrad, kMaximize);
  }
}

void FusedAdam::ClearGradients() {
  for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
}

}  // namespace plait::parallel
