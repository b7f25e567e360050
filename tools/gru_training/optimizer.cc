#include "tools/gru_training/optimizer.h"

#include <ATen/ops/zeros_like.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <utility>
#include <vector>

namespace plait::gru_training {
namespace {

using torch::optim::AdamParamState;

AdamParamState& StateOf(torch::optim::Optimizer& optimizer, const at::Tensor& parameter) {
  return static_cast<AdamParamState&>(*optimizer.state().at(parameter.unsafeGetTensorImpl()));
}

// What the first step would make: so that the state of a fresh optimizer can be read and replaced.
std::unique_ptr<torch::optim::Optimizer> NewAdam(const std::vector<at::Tensor>& parameters, double lr) {
  auto adam = std::make_unique<torch::optim::Adam>(parameters, torch::optim::AdamOptions(lr));
  for (const at::Tensor& parameter : parameters) {
    auto state = std::make_unique<AdamParamState>();
    state->step(0);
    state->exp_avg(at::zeros_like(parameter, at::MemoryFormat::Preserve));
    state->exp_avg_sq(at::zeros_like(parameter, at::MemoryFormat::Preserve));
    adam->state()[parameter.unsafeGetTensorImpl()] = std::move(state);
  }
  return adam;
}

}  // namespace

Optimizer::Optimizer(const Config& config, const NamedTensors& parameters)
    : kind_(config.use_sgd ? "sgd" : "adam"), parameters_(parameters) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : parameters) tensors.push_back(tensor);
  if (config.use_sgd) {
    optimizer_ = std::make_unique<torch::optim::SGD>(tensors, torch::optim::SGDOptions(config.lr));
  } else {
    optimizer_ = NewAdam(tensors, config.lr);
  }
}

Optimizer::~Optimizer() = default;

void Optimizer::ZeroGradients() { optimizer_->zero_grad(); }

void Optimizer::Step() {
  optimizer_->step();
  ++steps_;
}

NamedTensors Optimizer::State() const {
  NamedTensors named;
  if (kind_ != "adam") return named;
  for (const auto& [name, parameter] : parameters_) {
    AdamParamState& state = StateOf(*optimizer_, parameter);
    named.emplace_back("exp_avg." + name, state.exp_avg());
    named.emplace_back("exp_avg_sq." + name, state.exp_avg_sq());
  }
  return named;
}

std::int64_t Optimizer::steps() const { return steps_; }

void Optimizer::set_steps(std::int64_t steps) {
  steps_ = steps;
  if (kind_ != "adam") return;
  for (const auto& [name, parameter] : parameters_) StateOf(*optimizer_, parameter).step(steps);
}

}  // namespace plait::gru_training
