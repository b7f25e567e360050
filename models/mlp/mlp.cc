#include "models/mlp/mlp.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <torch/nn/module.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "models/fan_in_initialisation.h"

namespace plait::mlp {
namespace {

struct Layer final : torch::nn::Module {
  Layer(std::int64_t in, std::int64_t out, const at::TensorOptions& options)
      : Module("Linear"),
        weight(register_parameter("weight", at::empty({out, in}, options))),
        bias(register_parameter("bias", at::empty({out}, options))) {}

  at::Tensor weight, bias;
};

struct MlpModule final : torch::nn::Module {
  MlpModule(const MlpOptions& options, const at::TensorOptions& tensor_options) : Module("Network") {
    const auto row = register_module("layers", std::make_shared<torch::nn::Module>("Sequential"));
    for (std::size_t i = 0; i + 1 < options.widths.size(); ++i) {
      layers.push_back(row->register_module(
          absl::StrCat(i),
          std::make_shared<Layer>(options.widths[i], options.widths[i + 1], tensor_options)));
    }
  }

  std::vector<std::shared_ptr<Layer>> layers;
  models::BlockRunner block_runner;
};

}  // namespace

Mlp::Mlp(const MlpOptions& options, const at::TensorOptions& tensor_options) : options_(options) {
  PLAIT_CHECK(options.widths.size() >= 2) << "an MLP needs the widths of its input and its output";
  for (const std::int64_t width : options.widths) PLAIT_CHECK(width > 0) << "width " << width;
  module_ = std::make_shared<MlpModule>(options, tensor_options);
  for (std::size_t unit = 1; unit < options.widths.size(); ++unit) ResetParameters(unit);
}

at::Tensor Mlp::Forward(const at::Tensor& x) const {
  const auto& network = static_cast<const MlpModule&>(*module_);
  at::Tensor y = x;
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const bool relu = options_.activation == Activation::kRelu && i + 1 < network.layers.size();
    const auto forward = [layer = network.layers[i].get(), relu](const at::Tensor& input) {
      const at::Tensor output = at::linear(input, layer->weight, layer->bias);
      return relu ? at::relu(output) : output;
    };
    y = models::RunBlock(network.block_runner, i, forward, y);
  }
  return y;
}

std::vector<models::ParameterUnit> Mlp::units() const {
  std::vector<models::ParameterUnit> units = {{.name = "root", .parameters = {}}};
  for (const std::shared_ptr<Layer>& layer : static_cast<const MlpModule&>(*module_).layers) {
    const std::string name = absl::StrCat("layers.", units.size() - 1);
    units.push_back({name, {{name + ".weight", layer->weight}, {name + ".bias", layer->bias}}});
  }
  return units;
}

void Mlp::ResetParameters(std::size_t unit) const {
  const auto& layers = static_cast<const MlpModule&>(*module_).layers;
  PLAIT_CHECK(unit <= layers.size()) << "unit " << unit << " of " << layers.size() + 1;
  if (unit > 0) models::DrawByFanIn(layers[unit - 1]->weight, layers[unit - 1]->bias);
}

void Mlp::set_block_runner(models::BlockRunner runner) const {
  static_cast<MlpModule&>(*module_).block_runner = std::move(runner);
}

std::string Mlp::Description() const {
  std::string text = "Network(\n  (layers): Sequential(\n";
  for (std::size_t i = 0; i + 1 < options_.widths.size(); ++i) {
    absl::StrAppend(&text, "    (", i, "): Linear(in_features=", options_.widths[i],
                    ", out_features=", options_.widths[i + 1], ", bias=True)\n");
  }
  return text + "  )\n)";
}

std::vector<at::Tensor> Mlp::parameters() const { return module_->parameters(); }

}  // namespace plait::mlp
