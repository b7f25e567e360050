#include "models/resnet/resnet.h"

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tensor.h>
#include <torch/nn/module.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "models/cross_entropy.h"
#include "models/fan_in_initialisation.h"
#include "models/initial_values.h"
#include "models/layer_text.h"

namespace plait::resnet {
namespace {

constexpr std::int64_t kStem = 64;
constexpr double kEpsilon = 1e-5;

// Convolution without bias.
struct Conv final : torch::nn::Module {
  Conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t step,
       const at::TensorOptions& options)
      : stride(step), weight(register_parameter("weight", at::empty({out, in, kernel, kernel}, options))) {}
  at::Tensor Forward(const at::Tensor& x) const {
    return at::conv2d(x, weight, {}, {stride, stride}, {weight.size(2) / 2, weight.size(2) / 2});
  }
  void Reset() const {
    const auto fan_out = static_cast<double>(weight.size(0) * weight.size(2) * weight.size(3));
    models::DrawNormal(weight, {}, std::sqrt(2 / fan_out));
  }
  std::int64_t stride;
  at::Tensor weight;
};

// Batch norm with running statistics.
struct BatchNorm final : torch::nn::Module {
  BatchNorm(std::int64_t channels, const at::TensorOptions& options)
      : weight(register_parameter("weight", at::empty({channels}, options))),
        bias(register_parameter("bias", at::empty({channels}, options))),
        mean(register_buffer("running_mean", at::empty({channels}, options))),
        variance(register_buffer("running_var", at::empty({channels}, options))) {}
  at::Tensor Forward(const at::Tensor& x) const {
    return at::batch_norm(x, weight, bias, mean, variance, /*training=*/false, /*momentum=*/0, kEpsilon,
                          /*cudnn_enabled=*/false);
  }
  void Reset() const {
    for (const at::Tensor& one : {weight, variance}) models::Fill(one, 1);
    for (const at::Tensor& zero : {bias, mean}) models::Fill(zero, 0);
  }
  at::Tensor weight, bias, mean, variance;
};

struct ConvNorm {
  ConvNorm() = default;
  ConvNorm(torch::nn::Module& owner, const std::string& conv_name, const std::string& norm_name,
           std::shared_ptr<Conv> convolution, const at::TensorOptions& options)
      : conv(owner.register_module(conv_name, std::move(convolution))),
        norm(owner.register_module(norm_name, std::make_shared<BatchNorm>(conv->weight.size(0), options))) {}
  at::Tensor Forward(const at::Tensor& x) const { return norm->Forward(conv->Forward(x)); }
  void Reset() const {
    conv->Reset();
    norm->Reset();
  }
  std::shared_ptr<Conv> conv;
  std::shared_ptr<BatchNorm> norm;
};

// conv1 and bn1 of the network.
struct Stem {
  explicit Stem(const torch::nn::Module& module) {
    const auto children = module.named_children();
    part.conv = std::static_pointer_cast<Conv>(children["conv1"]);
    part.norm = std::static_pointer_cast<BatchNorm>(children["bn1"]);
  }
  ConvNorm part;
};

struct ResidualBlock final : torch::nn::Module, models::Block {
  ResidualBlock(bool bottleneck, std::int64_t in, std::int64_t width, std::int64_t stride,
                const at::TensorOptions& options) {
    const auto add = [&](std::int64_t from, std::int64_t to, std::int64_t kernel, std::int64_t step) {
      const std::string number = absl::StrCat(path.size() + 1);
      path.emplace_back(*this, "conv" + number, "bn" + number,
                        std::make_shared<Conv>(from, to, kernel, step, options), options);
    };
    const std::int64_t out = bottleneck ? 4 * width : width;
    if (bottleneck) {
      add(in, width, 1, 1);
      add(width, width, 3, stride);
      add(width, out, 1, 1);
    } else {
      add(in, width, 3, stride);
      add(width, out, 3, 1);
    }
    if (stride == 1 && in == out) return;
    auto downsample = register_module("downsample", std::make_shared<torch::nn::Module>("Sequential"));
    shortcut = ConvNorm(*downsample, "0", "1", std::make_shared<Conv>(in, out, 1, stride, options), options);
  }

  models::BlockState Forward(const models::BlockState& input, const models::BlockContext&) override {
    at::Tensor x = input.hidden;
    for (std::size_t i = 0; i < path.size(); ++i) {
      x = path[i].Forward(x);
      if (i + 1 < path.size()) x = at::relu(x);
    }
    const at::Tensor skipped = shortcut.conv == nullptr ? input.hidden : shortcut.Forward(input.hidden);
    return {at::relu(x + skipped), input.auxiliary_loss};
  }
  std::vector<at::Tensor> Parameters() const override { return parameters(); }
  void Reset() const {
    for (const ConvNorm& part : path) part.Reset();
    if (shortcut.conv != nullptr) shortcut.Reset();
  }

  std::vector<ConvNorm> path;
  ConvNorm shortcut;  // null conv: the identity
};

struct Linear final : torch::nn::Module {
  Linear(std::int64_t in, std::int64_t out, const at::TensorOptions& options)
      : weight(register_parameter("weight", at::empty({out, in}, options))),
        bias(register_parameter("bias", at::empty({out}, options))) {}
  at::Tensor weight, bias;
};

const Linear& HeadOf(const torch::nn::Module& module) {
  return static_cast<const Linear&>(*module.named_children()["fc"]);
}

}  // namespace

absl::StatusOr<ResNetOptions> ResNetNamed(absl::string_view name) {
  if (name == "resnet18") return ResNetOptions{};
  if (name == "resnet34") return ResNetOptions{.blocks = {3, 4, 6, 3}};
  if (name == "resnet50") return ResNetOptions{.blocks = {3, 4, 6, 3}, .bottleneck = true};
  return absl::InvalidArgumentError(absl::StrCat("\"", name, "\": expected resnet18, resnet34 or resnet50"));
}

ResNet::ResNet(const ResNetOptions& options, const at::TensorOptions& tensor_options)
    : ModuleModel(std::make_shared<torch::nn::Module>("ResNet")), options_(options) {
  ConvNorm(*module(), "conv1", "bn1", std::make_shared<Conv>(3, kStem, 7, 2, tensor_options), tensor_options);
  std::int64_t in = kStem, width = kStem;
  for (std::size_t layer = 0; layer < options.blocks.size(); ++layer, width *= 2) {
    const std::string name = absl::StrCat("layer", layer + 1);
    const auto row = module()->register_module(name, std::make_shared<torch::nn::Module>("Sequential"));
    for (int i = 0; i < options.blocks[layer]; ++i) {
      const std::int64_t stride = i == 0 && layer > 0 ? 2 : 1;
      const auto block =
          std::make_shared<ResidualBlock>(options.bottleneck, in, width, stride, tensor_options);
      AddBlock(absl::StrCat(name, ".", i), row->register_module(absl::StrCat(i), block));
      in = options.bottleneck ? 4 * width : width;
    }
  }
  module()->register_module("fc",
                            std::make_shared<Linear>(options.features(), options.classes, tensor_options));
  SetUsedBy(models::UsedBy::kPrologue, {"conv1", "bn1"});
  SetUsedBy(models::UsedBy::kEpilogue, {"fc"});
  for (std::size_t unit = 0; unit <= blocks().size(); ++unit) ResetParameters(unit);
}

models::BlockState ResNet::Prologue(const models::Batch& batch, const models::BlockContext&) {
  const at::Tensor& x = batch.inputs;
  PLAIT_CHECK(x.dim() == 4 && x.size(1) == 3)
      << "images of shape " << x.sizes() << ", expected (batch, 3, rows, columns)";
  return {.hidden = at::max_pool2d(at::relu(Stem(*module()).part.Forward(x)), {3, 3}, {2, 2}, {1, 1})};
}

at::Tensor ResNet::Output(const models::BlockState& state) {
  const Linear& fc = HeadOf(*module());
  return at::linear(state.hidden.mean({2, 3}), fc.weight, fc.bias);
}

models::LossSum ResNet::Epilogue(const models::BlockState& state, const models::Batch& batch) {
  return models::CrossEntropySum(Output(state), batch.targets, batch.valid_targets);
}

void ResNet::ResetParameters(std::size_t unit) {
  PLAIT_CHECK(unit <= blocks().size()) << "unit " << unit << " of " << blocks().size() + 1;
  if (unit > 0) return static_cast<const ResidualBlock&>(*blocks()[unit - 1]).Reset();
  Stem(*module()).part.Reset();
  models::DrawByFanIn(HeadOf(*module()).weight, HeadOf(*module()).bias);
}

std::string ResNet::Description() const {
  std::string text = absl::StrCat("ResNet(\n  (conv1): Conv2d(3, ", kStem,
                                  ", kernel_size=(7, 7), stride=(2, 2), padding=(3, 3), bias=False)\n");
  for (std::size_t layer = 0; layer < options_.blocks.size(); ++layer) {
    absl::StrAppend(&text, "  (layer", layer + 1, "): ", options_.blocks[layer], " x ",
                    options_.bottleneck ? "Bottleneck" : "BasicBlock", "\n");
  }
  return absl::StrCat(text, "  (fc): ", models::LinearText(options_.features(), options_.classes, true),
                      "\n)");
}

at::Tensor ImageNetInputs(const at::Tensor& pixels) {
  PLAIT_CHECK(pixels.dim() == 4 && pixels.size(3) == 3 && pixels.scalar_type() == at::kByte)
      << "pixels of shape " << pixels.sizes() << ", expected (n, rows, columns, 3) of uint8";
  const at::TensorOptions options = pixels.options().dtype(at::kFloat);
  const at::Tensor mean = at::tensor({0.485, 0.456, 0.406}, options);
  const at::Tensor deviation = at::tensor({0.229, 0.224, 0.225}, options);
  return pixels.to(at::kFloat).div(255).sub(mean).div(deviation).permute({0, 3, 1, 2}).contiguous();
}

}  // namespace plait::resnet
