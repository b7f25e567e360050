#include "models/mlp/mlp.h"

#include <ATen/ops/relu.h>
#include <torch/nn/modules/linear.h>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace plait::mlp {
namespace {

struct MlpModule final : torch::nn::Module {
  MlpModule(const MlpOptions& options, const at::TensorOptions& tensor_options) : Module("Network") {
    const auto row = register_module("layers", std::make_shared<torch::nn::Module>("Sequential"));
    for (std::size_t i = 0; i + 1 < options.widths.size(); ++i) {
      layers.push_back(
          row->register_module(absl::StrCat(i), torch::nn::Linear(options.widths[i], options.widths[i + 1])));
    }
    to(tensor_options.device(), c10::typeMetaToScalarType(tensor_options.dtype()));
  }

  std::vector<torch::nn::Linear> layers;
};

}  // namespace

Mlp::Mlp(const MlpOptions& options, const at::TensorOptions& tensor_options) : options_(options) {
  PLAIT_CHECK(options.widths.size() >= 2) << "an MLP needs the widths of its input and its output";
  for (const std::int64_t width : options.widths) PLAIT_CHECK(width > 0) << "width " << width;
  module_ = std::make_shared<MlpModule>(options, tensor_options);
}

at::Tensor Mlp::Forward(const at::Tensor& x) const {
  std::vector<torch::nn::Linear>& layers = static_cast<MlpModule&>(*module_).layers;
  at::Tensor y = x;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i > 0 && options_.activation == Activation::kRelu) y = at::relu(y);
    y = layers[i]->forward(y);
  }
  return y;
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
