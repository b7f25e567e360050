#include "tests/parity/normalized_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/tanh.h>
#include <torch/nn/module.h>

#include <memory>

namespace plait::parity {
namespace {

struct Layer final : torch::nn::Module, models::Block {
  Layer(std::int64_t width, const at::TensorOptions& options)
      : weight(register_parameter("weight", at::empty({width}, options))),
        bias(register_parameter("bias", at::empty({width}, options))),
        mean(register_buffer("mean", at::empty({width}, options))),
        variance(register_buffer("variance", at::empty({width}, options))) {}

  models::BlockState Forward(const models::BlockState& input, const models::BlockContext& context) override {
    const at::Tensor none;
    const bool moves = context.final && is_training();
    const at::Tensor normal =
        at::batch_norm(input.hidden, weight, bias, moves ? mean : none, moves ? variance : none,
                       /*training=*/true, /*momentum=*/0.1, /*eps=*/1e-5, /*cudnn_enabled=*/false);
    return {at::add(input.hidden, at::tanh(normal), context.dt / 4), input.auxiliary_loss};
  }
  std::vector<at::Tensor> Parameters() const override { return {weight, bias}; }

  at::Tensor weight, bias, mean, variance;
};

void Fill(const at::Tensor& tensor, double low, double high) {
  const at::NoGradGuard no_grad;
  if (!tensor.is_meta()) tensor.uniform_(low, high);
}

}  // namespace

NormalizedModel::NormalizedModel(std::int64_t features, std::int64_t layers, std::int64_t classes,
                                 const at::TensorOptions& options)
    : ModuleModel(std::make_shared<torch::nn::Module>("NormalizedModel")) {
  constexpr std::int64_t kWidth = 5;
  opening_ = module()->register_parameter("opening", at::empty({kWidth, features}, options));
  const auto row = module()->register_module("layers", std::make_shared<torch::nn::Module>());
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string number = std::to_string(i);
    AddBlock("layers." + number, row->register_module(number, std::make_shared<Layer>(kWidth, options)));
  }
  closing_ = module()->register_parameter("closing", at::empty({classes, kWidth}, options));
  for (std::size_t unit = 0; unit <= blocks().size(); ++unit) ResetParameters(unit);
}

models::BlockState NormalizedModel::Prologue(const models::Batch& batch, const models::BlockContext&) {
  return {.hidden = at::linear(batch.inputs, opening_)};
}

at::Tensor NormalizedModel::Output(const models::BlockState& state) {
  return at::linear(state.hidden, closing_);
}

models::LossSum NormalizedModel::Epilogue(const models::BlockState& state, const models::Batch& batch) {
  return {at::cross_entropy_loss(Output(state), batch.targets, {}, at::Reduction::Sum, /*ignore_index=*/-100),
          batch.targets.ge(0).sum().item<std::int64_t>()};
}

void NormalizedModel::ResetParameters(std::size_t unit) {
  if (unit == 0) {
    Fill(opening_, -1, 1);
    Fill(closing_, -1, 1);
    return;
  }
  const auto& layer = static_cast<const Layer&>(*blocks()[unit - 1]);
  Fill(layer.weight, 0.5, 1.5);
  Fill(layer.bias, -0.5, 0.5);
  Fill(layer.mean, 0.1, 0.2);
  Fill(layer.variance, 0.5, 1.5);
}

}  // namespace plait::parity
