// A multilayer perceptron: a sequence of linear layers, by default without activations.
//
//   plait::mlp::Mlp mlp({.widths = {128, 1024, 512, 256, 128, 128}}, at::kFloat);
//   at::Tensor y = mlp.Forward(x);          // x: (batch, 128); y: (batch, 128)
//   std::puts(mlp.Description().c_str());
//
// Initial values are those of torch::nn::Linear, from LibTorch's CPU generator. State dict: layers.0.weight
// (out, in), layers.0.bias, layers.1.weight, ... Blocks are the layers, each with the activation after it; the root
// unit has no parameters. The loss is the sum of squared errors over all outputs, its count the number of
// samples. Local.
#ifndef PLAIT_MODELS_MLP_MLP_H_
#define PLAIT_MODELS_MLP_MLP_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "models/module_model.h"

namespace plait::mlp {

enum class Activation { kNone, kRelu };

struct MlpOptions {
  std::vector<std::int64_t> widths;           // input, hidden layers, output: two or more, all positive
  Activation activation = Activation::kNone;  // between layers, not after the last
};

class Mlp final : public models::ModuleModel {
 public:
  // On the meta device nothing is allocated or drawn. Aborts if `widths` are out of range.
  Mlp(const MlpOptions& options, const at::TensorOptions& tensor_options);

  // Inputs (batch, widths.front()), output and targets (batch, widths.back()).
  models::BlockState Prologue(const models::Batch& batch, const models::BlockContext& context) override;
  at::Tensor Output(const models::BlockState& state) override;
  models::LossSum Epilogue(const models::BlockState& state, const models::Batch& batch) override;
  void ResetParameters(std::size_t unit) override;
  // In the format in which PyTorch prints modules.
  std::string Description() const override;

 private:
  MlpOptions options_;
};

}  // namespace plait::mlp

#endif  // PLAIT_MODELS_MLP_MLP_H_
