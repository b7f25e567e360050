// The convolutional network of PyTorch's MNIST example: two convolutions, max-pooling, two linear layers.
//
//   plait::cnn::Cnn cnn({}, at::kFloat);               // 28 x 28 pixels, ten classes, 1,199,882 parameters
//   at::Tensor log_probabilities = cnn.Forward(x);     // x: (batch, 1, 28, 28); result: (batch, 10)
//   models::LossSum loss = models::RunModel(cnn, {.inputs = x, .targets = labels});
//   cnn.SetTraining(false);                            // for evaluation: no dropout
//
//   (1, rows, columns)
//     conv1 3x3, relu         (conv1_channels, rows - 2, columns - 2)
//     conv2 3x3, relu         (conv2_channels, rows - 4, columns - 4)
//     max-pool 2              (conv2_channels, (rows - 4) / 2, (columns - 4) / 2), rounded down
//     dropout1, flatten, fc1, relu     (hidden)
//     dropout2, fc2, log-softmax       (classes)
//
// Initial values are those of torch::nn::Conv2d and torch::nn::Linear, from LibTorch's CPU generator. State dict:
// conv1.weight (out, in, 3, 3), conv1.bias, conv2..., fc1.weight (out, in), fc1.bias, fc2.... The four blocks are
// the layers, each with the operations up to the next layer; the root unit has no parameters. Output is the
// log-softmax of the last block's logits, the loss their cross entropy. Dropout masks (parallel/dropout) are a
// function of sample, feature, layer and models::RandomContext. Local.
#ifndef PLAIT_MODELS_CNN_CNN_H_
#define PLAIT_MODELS_CNN_CNN_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "models/module_model.h"

namespace plait::cnn {

struct CnnOptions {
  std::int64_t rows = 28, columns = 28;  // at least 6
  std::int64_t conv1_channels = 32, conv2_channels = 64;
  std::int64_t hidden = 128;
  std::int64_t classes = 10;
  double dropout1 = 0.25, dropout2 = 0.5;  // dropout probabilities, in [0, 1)
};

class Cnn final : public models::ModuleModel {
 public:
  // Starts in training mode. On the meta device nothing is allocated or drawn. Aborts if an option is out of range.
  Cnn(const CnnOptions& options, const at::TensorOptions& tensor_options);

  // Inputs (batch, 1, rows, columns).
  models::BlockState Prologue(const models::Batch& batch, const models::BlockContext& context) override;
  // Logarithms of probabilities, (batch, classes).
  at::Tensor Output(const models::BlockState& state) override;
  models::LossSum Epilogue(const models::BlockState& state, const models::Batch& batch) override;
  void ResetParameters(std::size_t unit) override;
  // In the format in which PyTorch prints modules.
  std::string Description() const override;

 private:
  CnnOptions options_;
};

}  // namespace plait::cnn

#endif  // PLAIT_MODELS_CNN_CNN_H_
