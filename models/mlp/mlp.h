// A multilayer perceptron: linear layers in a row, by default without anything between them.
//
//   plait::mlp::Mlp mlp({.widths = {128, 1024, 512, 256, 128, 128}}, at::kFloat);
//   at::Tensor y = mlp.Forward(x);          // x: (batch, 128); y: (batch, 128)
//   std::puts(mlp.Description().c_str());
//
// Initial values are those of torch::nn::Linear, from LibTorch's generator. State dict: layers.0.weight
// (out, in), layers.0.bias, layers.1.weight, ... Blocks for engines (models/block_runner.h) are the layers,
// each with the activation behind it. A handle: copies share parameters and block runner. Local.
#ifndef PLAIT_MODELS_MLP_MLP_H_
#define PLAIT_MODELS_MLP_MLP_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/block_runner.h"

namespace torch::nn {
class Module;
}

namespace plait::mlp {

enum class Activation { kNone, kRelu };

struct MlpOptions {
  std::vector<std::int64_t> widths;           // input, hidden layers, output: at least two, all positive
  Activation activation = Activation::kNone;  // between layers, not after the last
};

class Mlp {
 public:
  // On kMeta no memory is taken and nothing is drawn.
  Mlp(const MlpOptions& options, const at::TensorOptions& tensor_options);

  // (batch, widths.front()) -> (batch, widths.back()). Recorded by autograd.
  at::Tensor Forward(const at::Tensor& x) const;

  // The root has no parameters; unit i + 1 is layer i.
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
  MlpOptions options_;
  std::shared_ptr<torch::nn::Module> module_;
};

}  // namespace plait::mlp

#endif  // PLAIT_MODELS_MLP_MLP_H_
