// The convolutional network of PyTorch's MNIST example: two convolutions, max-pooling, two linear layers.
//
//   plait::cnn::Cnn cnn({}, at::kFloat);               // 28 x 28 pixels, ten classes, 1,199,882 parameters
//   at::Tensor log_probabilities = cnn.Forward(x);     // x: (batch, 1, 28, 28); result: (batch, 10)
//   at::Tensor loss = at::nll_loss(log_probabilities, labels);
//   cnn.SetTraining(false);                            // before testing: no dropout
//
//   (1, rows, columns)
//     conv1 3x3, relu         (conv1_channels, rows - 2, columns - 2)
//     conv2 3x3, relu         (conv2_channels, rows - 4, columns - 4)
//     max-pool 2              (conv2_channels, (rows - 4) / 2, (columns - 4) / 2), rounded down
//     dropout1, flatten, fc1, relu     (hidden)
//     dropout2, fc2, log-softmax       (classes)
//
// Initial values are those of torch::nn::Conv2d and torch::nn::Linear, from LibTorch's generator. State dict:
// conv1.weight (out, in, 3, 3), conv1.bias, conv2..., fc1.weight (out, in), fc1.bias, fc2.... Blocks for
// engines (models/block_runner.h) are the four layers, each with what follows it up to the next. A handle:
// copies share parameters, mode and block runner. Local.
#ifndef PLAIT_MODELS_CNN_CNN_H_
#define PLAIT_MODELS_CNN_CNN_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/block_runner.h"

namespace torch::nn {
class Module;
}

namespace plait::cnn {

struct CnnOptions {
  std::int64_t rows = 28, columns = 28;  // at least 6
  std::int64_t conv1_channels = 32, conv2_channels = 64;
  std::int64_t hidden = 128;
  std::int64_t classes = 10;
  double dropout1 = 0.25, dropout2 = 0.5;  // probability of a zero, 0 to 1
};

class Cnn {
 public:
  // Begins in training mode. On kMeta no memory is taken and nothing is drawn. Options outside their bounds
  // are a programming error.
  Cnn(const CnnOptions& options, const at::TensorOptions& tensor_options);

  // (batch, 1, rows, columns) -> (batch, classes), logarithms of probabilities. Recorded by autograd.
  at::Tensor Forward(const at::Tensor& x) const;

  // Whether dropout acts.
  void SetTraining(bool training);

  // The root has no parameters; units 1 to 4 are conv1, conv2, fc1, fc2.
  std::vector<models::ParameterUnit> units() const;
  // Draws the initial values of one unit; all units in their order: what the constructor draws.
  void ResetParameters(std::size_t unit) const;
  void set_block_runner(models::BlockRunner runner) const;

  // Layer by layer, as PyTorch prints modules.
  std::string Description() const;

  const std::shared_ptr<torch::nn::Module>& module() const { return module_; }
  // In the order of the layers, weight before bias.
  std::vector<at::Tensor> parameters() const;

 private:
  CnnOptions options_;
  std::shared_ptr<torch::nn::Module> module_;
};

}  // namespace plait::cnn

#endif  // PLAIT_MODELS_CNN_CNN_H_
