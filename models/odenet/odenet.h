// Residual networks as explicit Euler steps of an ordinary differential equation: classifiers of any depth.
//
//   odenet::OdeNet net({.sample = {2}, .channels = 8, .layers = 32, .final_time = 5, .classes = 5}, at::kFloat);
//   models::LossSum loss = models::RunModel(net, {.inputs = x, .targets = labels});   // x: (batch, 2)
//
//   opening    u_0 = s(A x + a)                     dense, or a convolution of width 3
//   layer i    u_{i+1} = u_i + h F(u_i; theta_i)    h = T / layers (ODENet), or 1 (ResNet)
//   closing    logits = C u_N + c                   of the flattened state, optionally with a hidden layer
//
// F is s(K u + b) in the dense form, and s(K2 * s(K1 * u + b1) + b2), two convolutions of width 3, in the others; s is
// the activation (Haber & Ruthotto, Inverse Problems 2017, equation 2.2; Guenther, Ruthotto, Schroder, Cyr, Gauger,
// SIMODS 2020, section 2). The blocks are the layers. Their step size is h times BlockContext::dt, which is in
// units of layers: 1 in a plain pass, the coarsening factor on coarse levels of a layer-parallel solver.
//
// State dict: opening.*, layers.I.linear.* or layers.I.conv1.* and layers.I.conv2.*, [closing_hidden.*,] closing.*.
// Control points shared by several layers are controls.J.linear.*, ..., and belong to the root unit; a layer then has
// only the buffer layers.I.time, the time at which its step begins. Local.
#ifndef PLAIT_MODELS_ODENET_ODENET_H_
#define PLAIT_MODELS_ODENET_ODENET_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "models/module_model.h"
#include "models/odenet/options.h"

namespace plait::odenet {

// The linear layer or the convolutions of F at one point in time.
struct Rate;

class OdeNet final : public models::ModuleModel {
 public:
  // On the meta device nothing is allocated or drawn. Aborts if an option is out of range.
  OdeNet(const OdeNetOptions& options, const at::TensorOptions& tensor_options);

  models::BlockState Prologue(const models::Batch& batch, const models::BlockContext& context) override;
  // Logits, (batch, classes).
  at::Tensor Output(const models::BlockState& state) override;
  // Cross entropy. With control points its gradient in training, but not its value, includes that of TimeTikhonov().
  // With parameters per layer, which may be on other ranks, the training loop has to add that gradient.
  models::LossSum Epilogue(const models::BlockState& state, const models::Batch& batch) override;
  // Weight decay applies to all parameters of the layers, including biases, and to no others.
  std::vector<models::ParameterUnit> units() const override;
  void ResetParameters(std::size_t unit) override;
  std::string Description() const override;

  // beta / 2 sum_j |theta_{j+1} - theta_j|^2 / spacing over the control points, or the layers (SIMODS 2020, equation 6);
  // recorded by autograd. Local; needs the unsharded parameters of all layers on this rank.
  at::Tensor TimeTikhonov() const;

  const OdeNetOptions& options() const { return options_; }

 private:
  OdeNetOptions options_;
  std::shared_ptr<torch::nn::Module> opening_, closing_, closing_hidden_;  // closing_hidden_: may be null
  std::vector<std::shared_ptr<Rate>> points_;                              // by layer or control point
};

}  // namespace plait::odenet

#endif  // PLAIT_MODELS_ODENET_ODENET_H_
