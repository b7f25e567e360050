// ResNet-18, -34 and -50 (He et al., arXiv:1512.03385) with torchvision's layers, state-dict names and results.
//
//   PLAIT_ASSIGN_OR_RETURN(const ResNetOptions options, ResNetNamed("resnet18"));
//   ResNet resnet(options, at::kFloat);
//   PLAIT_RETURN_IF_ERROR(ReadSafetensors("resnet18.safetensors", resnet));   // models/resnet/safetensors.h
//   at::Tensor scores = resnet.Forward(ImageNetInputs(frames));               // (n, 1000)
//
//   conv1 7x7 / 2, bn1, relu, max-pool 3x3 / 2          (64, rows / 4, columns / 4)
//   layer1 ... layer4: blocks of two 3x3 (18, 34) or of 1x1, 3x3, 1x1 (50) convolutions, each with batch norm;
//     the first block of layer2 to layer4 halves rows and columns in its 3x3 convolution
//   mean over rows and columns, fc                      (classes)
//
// Images may have any size from 32 x 32 on. Blocks are layer1.0, layer1.1, ...; the root unit has conv1, bn1 and fc.
// Batch norm always uses its running statistics, as torchvision's models do in evaluation mode: the network is meant
// as a feature extractor with given weights. Training updates weights only, never the statistics. torchvision's
// counters num_batches_tracked, which evaluation does not read, are left out. Local.
#ifndef PLAIT_MODELS_RESNET_RESNET_H_
#define PLAIT_MODELS_RESNET_RESNET_H_

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/module_model.h"

namespace plait::resnet {

struct ResNetOptions {
  std::array<int, 4> blocks = {2, 2, 2, 2};  // of layer1 to layer4
  bool bottleneck = false;                   // three convolutions per block, the last one four times as wide
  std::int64_t classes = 1000;

  std::int64_t features() const { return bottleneck ? 2048 : 512; }  // in_features of fc
};

// Options of "resnet18", "resnet34" or "resnet50". InvalidArgument for another name; the message lists them.
absl::StatusOr<ResNetOptions> ResNetNamed(absl::string_view name);

class ResNet final : public models::ModuleModel {
 public:
  // On the meta device nothing is allocated or drawn. Initial values have torchvision's distributions (convolutions
  // normal with variance 2 / (outputs x kernel), fc as torch::nn::Linear), but are drawn in another order.
  ResNet(const ResNetOptions& options, const at::TensorOptions& tensor_options);

  const ResNetOptions& options() const { return options_; }

  // Inputs (batch, 3, rows, columns).
  models::BlockState Prologue(const models::Batch& batch, const models::BlockContext& context) override;
  // Logits, (batch, classes).
  at::Tensor Output(const models::BlockState& state) override;
  models::LossSum Epilogue(const models::BlockState& state, const models::Batch& batch) override;
  void ResetParameters(std::size_t unit) override;
  // In the format in which PyTorch prints modules, abridged to one line per layer.
  std::string Description() const override;

 private:
  ResNetOptions options_;
};

// The normalization of torchvision's ImageClassification preset, without resizing and cropping: (n, rows, columns, 3)
// uint8 -> (n, 3, rows, columns) float32, (pixel / 255 - mean) / std with ImageNet's mean (0.485, 0.456, 0.406) and
// std (0.229, 0.224, 0.225). Aborts for another shape or dtype.
at::Tensor ImageNetInputs(const at::Tensor& pixels);

}  // namespace plait::resnet

#endif  // PLAIT_MODELS_RESNET_RESNET_H_
