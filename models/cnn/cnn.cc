#include "models/cnn/cnn.h"

#include <ATen/ops/conv2d.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "models/fan_in_initialisation.h"

namespace plait::cnn {
namespace {

constexpr std::int64_t kKernel = 3, kPool = 2;
// What both convolutions take off rows and columns.
constexpr std::int64_t kBorder = 2 * (kKernel - 1);

std::int64_t Features(const CnnOptions& options) {
  return options.conv2_channels * ((options.rows - kBorder) / kPool) * ((options.columns - kBorder) / kPool);
}

void CheckOptions(const CnnOptions& options) {
  PLAIT_CHECK(std::min(options.rows, options.columns) >= kBorder + kPool)
      << "images of " << options.rows << " x " << options.columns;
  PLAIT_CHECK(std::min(options.conv1_channels, options.conv2_channels) > 0)
      << options.conv1_channels << " and " << options.conv2_channels << " channels";
  PLAIT_CHECK(std::min(options.hidden, options.classes) > 0)
      << options.hidden << " hidden, " << options.classes << " classes";
  for (const double p : {options.dropout1, options.dropout2})
    PLAIT_CHECK(p >= 0 && p <= 1) << "dropout " << p;
}

struct Layer final : torch::nn::Module {
  Layer(at::IntArrayRef weight_shape, const at::TensorOptions& options)
      : weight(register_parameter("weight", at::empty(weight_shape, options))),
        bias(register_parameter("bias", at::empty(weight_shape[0], options))) {}

  at::Tensor weight, bias;
};

constexpr std::size_t kLayers = 4;
constexpr std::array<const char*, kLayers> kNames = {"conv1", "conv2", "fc1", "fc2"};

struct CnnModule final : torch::nn::Module {
  CnnModule(const CnnOptions& options, const at::TensorOptions& tensor_options)
      : Module("Net"), dropout1(options.dropout1), dropout2(options.dropout2) {
    const std::array<std::vector<std::int64_t>, kLayers> shapes = {{
        {options.conv1_channels, 1, kKernel, kKernel},
        {options.conv2_channels, options.conv1_channels, kKernel, kKernel},
        {options.hidden, Features(options)},
        {options.classes, options.hidden},
    }};
    for (std::size_t i = 0; i < kLayers; ++i) {
      layers[i] = register_module(kNames[i], std::make_shared<Layer>(shapes[i], tensor_options));
    }
  }

  at::Tensor RunLayer(std::size_t i, const at::Tensor& x) const {
    const Layer& layer = *layers[i];
    switch (i) {
      case 0:
        return at::relu(at::conv2d(x, layer.weight, layer.bias));
      case 1: {
        const at::Tensor y = at::relu(at::conv2d(x, layer.weight, layer.bias));
        return at::dropout(at::max_pool2d(y, {kPool, kPool}), dropout1, is_training()).flatten(1);
      }
      case 2:
        return at::dropout(at::relu(at::linear(x, layer.weight, layer.bias)), dropout2, is_training());
      default:
        return at::log_softmax(at::linear(x, layer.weight, layer.bias), 1);
    }
  }

  double dropout1, dropout2;
  std::array<std::shared_ptr<Layer>, kLayers> layers;
  models::BlockRunner block_runner;
};

std::string ConvText(std::int64_t in, std::int64_t out) {
  return absl::StrCat("Conv2d(", in, ", ", out, ", kernel_size=(3, 3), stride=(1, 1))");
}

// Python prints a float with a point, also where it is whole.
std::string DropoutText(double p) {
  const std::string number = absl::StrCat(p);
  const bool whole = !absl::StrContains(number, '.') && !absl::StrContains(number, 'e');
  return absl::StrCat("Dropout(p=", number, whole ? ".0" : "", ", inplace=False)");
}

std::string LinearText(std::int64_t in, std::int64_t out) {
  return absl::StrCat("Linear(in_features=", in, ", out_features=", out, ", bias=True)");
}

}  // namespace

Cnn::Cnn(const CnnOptions& options, const at::TensorOptions& tensor_options) : options_(options) {
  CheckOptions(options);
  module_ = std::make_shared<CnnModule>(options, tensor_options);
  for (std::size_t unit = 1; unit <= kLayers; ++unit) ResetParameters(unit);
}

at::Tensor Cnn::Forward(const at::Tensor& x) const {
  PLAIT_CHECK(x.dim() == 4 && x.size(1) == 1 && x.size(2) == options_.rows && x.size(3) == options_.columns)
      << "images of shape " << x.sizes() << ", expected (batch, 1, " << options_.rows << ", "
      << options_.columns << ")";
  const auto& network = static_cast<const CnnModule&>(*module_);
  at::Tensor y = x;
  for (std::size_t i = 0; i < kLayers; ++i) {
    const auto forward = [&network, i](const at::Tensor& input) { return network.RunLayer(i, input); };
    y = models::RunBlock(network.block_runner, i, forward, y);
  }
  return y;
}

std::vector<models::ParameterUnit> Cnn::units() const {
  std::vector<models::ParameterUnit> units = {{.name = "root", .parameters = {}}};
  for (std::size_t i = 0; i < kLayers; ++i) {
    const Layer& layer = *static_cast<const CnnModule&>(*module_).layers[i];
    const std::string name = kNames[i];
    units.push_back({name, {{name + ".weight", layer.weight}, {name + ".bias", layer.bias}}});
  }
  return units;
}

void Cnn::ResetParameters(std::size_t unit) const {
  PLAIT_CHECK(unit <= kLayers) << "unit " << unit << " of " << kLayers + 1;
  if (unit == 0) return;
  const Layer& layer = *static_cast<const CnnModule&>(*module_).layers[unit - 1];
  models::DrawByFanIn(layer.weight, layer.bias);
}

void Cnn::set_block_runner(models::BlockRunner runner) const {
  static_cast<CnnModule&>(*module_).block_runner = std::move(runner);
}

void Cnn::SetTraining(bool training) { module_->train(training); }

std::string Cnn::Description() const {
  return absl::StrCat("Net(\n",                                                                         //
                      "  (conv1): ", ConvText(1, options_.conv1_channels), "\n",                        //
                      "  (conv2): ", ConvText(options_.conv1_channels, options_.conv2_channels), "\n",  //
                      "  (dropout1): ", DropoutText(options_.dropout1), "\n",                           //
                      "  (dropout2): ", DropoutText(options_.dropout2), "\n",                           //
                      "  (fc1): ", LinearText(Features(options_), options_.hidden), "\n",               //
                      "  (fc2): ", LinearText(options_.hidden, options_.classes), "\n", ")");
}

std::vector<at::Tensor> Cnn::parameters() const { return module_->parameters(); }

}  // namespace plait::cnn
