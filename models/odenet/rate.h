// The right-hand side F(u; theta) of an OdeNet, and its linear maps.
#ifndef PLAIT_MODELS_ODENET_RATE_H_
#define PLAIT_MODELS_ODENET_RATE_H_

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "models/odenet/options.h"

namespace plait::odenet {

// A linear layer, or a convolution of width 3 that keeps rows and columns.
struct Affine final : torch::nn::Module {
  Affine(Form form, std::int64_t in, std::int64_t out, const at::TensorOptions& options);
  at::Tensor weight, bias;
};

at::Tensor Apply(Form form, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
at::Tensor Activate(Activation activation, const at::Tensor& x);

// weight and bias of F's linear layer, or of both convolutions.
using Theta = std::vector<at::Tensor>;

struct Rate final : torch::nn::Module {
  Rate(const OdeNetOptions& options, const at::TensorOptions& tensor_options);
  Theta theta() const;
  std::vector<std::shared_ptr<Affine>> parts;
};

at::Tensor EvaluateRate(const OdeNetOptions& options, const Theta& theta, const at::Tensor& u);

// theta of layer `layer`: that of point `first`, or (1 - share) of it and `share` of the next one.
struct TimePoint {
  std::int64_t first = 0;
  double share = 0;
};
TimePoint PointOf(const OdeNetOptions& options, std::int64_t layer);

}  // namespace plait::odenet

#endif  // PLAIT_MODELS_ODENET_RATE_H_
