#include "models/mlp/mlp.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/relu.h>
#include <torch/nn/module.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "models/fan_in_initialisation.h"
#include "models/layer_text.h"
#include "models/linear/linear.h"

namespace plait::mlp {
namespace {

struct Layer final : torch::nn::Module, models::Block {
  Layer(std::int64_t in, std::int64_t out, bool with_relu, const at::TensorOptions& options)
      : Module("Linear"),
        relu(with_relu),
        weight(register_parameter("weight", at::empty({out, in}, options))),
        bias(register_parameter("bias", at::empty({out}, options))) {}

  models::BlockState Forward(const models::BlockState& input, const models::BlockContext&) override {
    const at::Tensor output = linear::Linear(input.hidden, weight, bias);
    return {relu ? at::relu(output) : output, input.auxiliary_loss};
  }
  std::vector<at::Tensor> Parameters() const override { return parameters(); }

  bool relu;
  at::Tensor weight, bias;
};

}  // namespace

Mlp::Mlp(const MlpOptions& options, const at::TensorOptions& tensor_options)
    : ModuleModel(std::make_shared<torch::nn::Module>("Network")), options_(options) {
  PLAIT_CHECK(options.widths.size() >= 2) << "an MLP needs the widths of its input and its output";
  for (const std::int64_t width : options.widths) PLAIT_CHECK(width > 0) << "width " << width;
  const auto row = module()->register_module("layers", std::make_shared<torch::nn::Module>("Sequential"));
  for (std::size_t i = 0; i + 1 < options.widths.size(); ++i) {
    const bool relu = options.activation == Activation::kRelu && i + 2 < options.widths.size();
    const auto layer =
        std::make_shared<Layer>(options.widths[i], options.widths[i + 1], relu, tensor_options);
    AddBlock(absl::StrCat("layers.", i), row->register_module(absl::StrCat(i), layer));
    ResetParameters(i + 1);
  }
}

models::BlockState Mlp::Prologue(const models::Batch& batch, const models::BlockContext&) {
  return {.hidden = batch.inputs};
}

at::Tensor Mlp::Output(const models::BlockState& state) { return state.hidden; }

models::LossSum Mlp::Epilogue(const models::BlockState& state, const models::Batch& batch) {
  PLAIT_CHECK(batch.targets.sizes() == state.hidden.sizes())
      << "targets of shape " << batch.targets.sizes() << ", expected " << state.hidden.sizes();
  const at::ScalarType type = state.hidden.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return {at::mse_loss(state.hidden.to(type), batch.targets.to(type), at::Reduction::Sum),
          batch.targets.size(0)};
}

void Mlp::ResetParameters(std::size_t unit) {
  PLAIT_CHECK(unit <= blocks().size()) << "unit " << unit << " of " << blocks().size() + 1;
  if (unit == 0) return;
  const auto& layer = static_cast<const Layer&>(*blocks()[unit - 1]);
  models::DrawByFanIn(layer.weight, layer.bias);
}

std::string Mlp::Description() const {
  std::string text = "Network(\n  (layers): Sequential(\n";
  for (std::size_t i = 0; i + 1 < options_.widths.size(); ++i) {
    absl::StrAppend(&text, "    (", i,
                    "): ", models::LinearText(options_.widths[i], options_.widths[i + 1], true), "\n");
  }
  return text + "  )\n)";
}

}  // namespace plait::mlp
