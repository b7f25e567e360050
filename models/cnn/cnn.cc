#include "models/cnn/cnn.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/seed.h"
#include "models/cross_entropy.h"
#include "models/fan_in_initialisation.h"
#include "models/layer_text.h"
#include "parallel/dropout/dropout.h"

namespace plait::cnn {
namespace {

constexpr std::int64_t kKernel = 3, kPool = 2;
// By how much both convolutions together reduce rows and columns.
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
  for (const double p : {options.dropout1, options.dropout2}) PLAIT_CHECK(p >= 0 && p < 1) << "dropout " << p;
}

struct Layer final : torch::nn::Module, models::Block {
  using Function =
      std::function<at::Tensor(const Layer& layer, const at::Tensor& x, const models::RandomContext& random)>;

  Layer(at::IntArrayRef weight_shape, Function layer_function, const at::TensorOptions& options)
      : weight(register_parameter("weight", at::empty(weight_shape, options))),
        bias(register_parameter("bias", at::empty(weight_shape[0], options))),
        function(std::move(layer_function)) {}

  models::BlockState Forward(const models::BlockState& input, const models::BlockContext& context) override {
    return {function(*this, input.hidden, context.random), input.auxiliary_loss};
  }
  std::vector<at::Tensor> Parameters() const override { return parameters(); }

  at::Tensor weight, bias;
  Function function;
};

at::Tensor ConvRelu(const Layer& layer, const at::Tensor& x) {
  return at::relu(at::conv2d(x, layer.weight, layer.bias));
}

at::Tensor Linear(const Layer& layer, const at::Tensor& x) { return at::linear(x, layer.weight, layer.bias); }

// Applies dropout to x (batch, features) in training mode; `name`: the module's name in PyTorch's example.
at::Tensor Dropped(const Layer& layer, const at::Tensor& x, double probability, const char* name,
                   const models::RandomContext& random) {
  if (!layer.is_training()) return x;
  const std::int64_t first = random.first_sample;
  return dropout::Dropout(x, {probability, base::DeriveSeed(random.seed, name)},
                          {at::arange(first, first + x.size(0), x.options().dtype(at::kLong)), x.size(1)});
}

std::string ConvText(std::int64_t in, std::int64_t out) {
  return absl::StrCat("Conv2d(", in, ", ", out, ", kernel_size=(3, 3), stride=(1, 1))");
}

}  // namespace

Cnn::Cnn(const CnnOptions& options, const at::TensorOptions& tensor_options)
    : ModuleModel(std::make_shared<torch::nn::Module>("Net")), options_(options) {
  CheckOptions(options);
  const auto add = [&](const char* name, at::IntArrayRef weight_shape, Layer::Function function) {
    const auto layer = std::make_shared<Layer>(weight_shape, std::move(function), tensor_options);
    AddBlock(name, module()->register_module(name, layer));
    ResetParameters(blocks().size());
  };
  using models::RandomContext;
  add("conv1", {options.conv1_channels, 1, kKernel, kKernel},
      [](const Layer& layer, const at::Tensor& x, const RandomContext&) { return ConvRelu(layer, x); });
  add("conv2", {options.conv2_channels, options.conv1_channels, kKernel, kKernel},
      [p = options.dropout1](const Layer& layer, const at::Tensor& x, const RandomContext& random) {
        const at::Tensor pooled = at::max_pool2d(ConvRelu(layer, x), {kPool, kPool});
        return Dropped(layer, pooled.flatten(1), p, "dropout1", random);
      });
  add("fc1", {options.hidden, Features(options)},
      [p = options.dropout2](const Layer& layer, const at::Tensor& x, const RandomContext& random) {
        return Dropped(layer, at::relu(Linear(layer, x)), p, "dropout2", random);
      });
  add("fc2", {options.classes, options.hidden},
      [](const Layer& layer, const at::Tensor& x, const RandomContext&) { return Linear(layer, x); });
}

models::BlockState Cnn::Prologue(const models::Batch& batch, const models::BlockContext&) {
  const at::Tensor& x = batch.inputs;
  PLAIT_CHECK(x.dim() == 4 && x.size(1) == 1 && x.size(2) == options_.rows && x.size(3) == options_.columns)
      << "images of shape " << x.sizes() << ", expected (batch, 1, " << options_.rows << ", "
      << options_.columns << ")";
  return {.hidden = x};
}

at::Tensor Cnn::Output(const models::BlockState& state) { return at::log_softmax(state.hidden, 1); }

models::LossSum Cnn::Epilogue(const models::BlockState& state, const models::Batch& batch) {
  return models::CrossEntropySum(state.hidden, batch.targets, batch.valid_targets);
}

void Cnn::ResetParameters(std::size_t unit) {
  PLAIT_CHECK(unit <= blocks().size()) << "unit " << unit << " of " << blocks().size() + 1;
  if (unit == 0) return;
  const auto& layer = static_cast<const Layer&>(*blocks()[unit - 1]);
  models::DrawByFanIn(layer.weight, layer.bias);
}

std::string Cnn::Description() const {
  return absl::StrCat("Net(\n",                                                                          //
                      "  (conv1): ", ConvText(1, options_.conv1_channels), "\n",                         //
                      "  (conv2): ", ConvText(options_.conv1_channels, options_.conv2_channels), "\n",   //
                      "  (dropout1): ", models::DropoutText(options_.dropout1), "\n",                    //
                      "  (dropout2): ", models::DropoutText(options_.dropout2), "\n",                    //
                      "  (fc1): ", models::LinearText(Features(options_), options_.hidden, true), "\n",  //
                      "  (fc2): ", models::LinearText(options_.hidden, options_.classes, true), "\n", ")");
}

}  // namespace plait::cnn
