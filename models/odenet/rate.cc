#include "models/odenet/rate.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/where.h>

#include <algorithm>

#include "models/odenet/own_step.h"
#include "models/stacked/layers.h"

namespace plait::odenet {
namespace {

constexpr std::int64_t kWidth = 3;

// The parabola that joins 0 and x smoothly at +-0.1.
at::Tensor SmoothRelu(const at::Tensor& x) {
  constexpr double kCorner = 0.1;
  const at::Tensor parabola = (x + kCorner).square() / (4 * kCorner);
  return at::where(x.abs() < kCorner, parabola, at::relu(x));
}

}  // namespace

std::vector<std::int64_t> WeightShape(Form form, std::int64_t in, std::int64_t out) {
  if (form == Form::kDense) return {out, in};
  if (form == Form::kConv1d) return {out, in, kWidth};
  return {out, in, kWidth, kWidth};
}

at::Tensor Apply(Form form, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (form == Form::kDense) return at::linear(x, weight, bias);
  if (form == Form::kConv1d) return at::conv1d(x, weight, bias, /*stride=*/1, /*padding=*/1);
  return at::conv2d(x, weight, bias, /*stride=*/1, /*padding=*/1);
}

at::Tensor Activate(Activation activation, const at::Tensor& x) {
  if (activation == Activation::kTanh) return at::tanh(x);
  return activation == Activation::kRelu ? at::relu(x) : SmoothRelu(x);
}

at::Tensor TakeStep(const OdeNetOptions& options, const Theta& theta, const at::Tensor& u, double step) {
  if (options.form == Form::kConv2d && options.activation == Activation::kRelu && HasOwnStep(u, theta))
    return OwnStep(u, theta, step);
  at::Tensor value = u;
  for (std::size_t i = 0; i < theta.size(); i += 2) {
    value = Activate(options.activation, Apply(options.form, value, theta[i], theta[i + 1]));
  }
  return at::add(u, value, step);
}

at::Tensor EvaluateRates(const OdeNetOptions& options, const std::vector<Theta>& thetas,
                         const at::Tensor& u) {
  const auto stack = [&](std::size_t i) {
    std::vector<at::Tensor> tensors;
    for (const Theta& theta : thetas) tensors.push_back(theta[i]);
    return stacked::Stacked(tensors);
  };
  at::Tensor value = u;
  for (std::size_t i = 0; i < thetas[0].size(); i += 2) {
    const at::Tensor weight = stack(i), bias = stack(i + 1);
    const bool dense = options.form == Form::kDense;
    value = Activate(options.activation, dense ? stacked::Linear(value, weight, bias)
                                               : stacked::Convolution(value, weight, bias, /*padding=*/1));
  }
  return value;
}

TimePoint PointOf(const OdeNetOptions& options, std::int64_t layer) {
  if (options.time_weights == TimeWeights::kPerLayer) return {layer};
  if (options.time_weights == TimeWeights::kPiecewise) return {layer / (options.layers / options.controls)};
  // The time at which the layer's step begins, in units of spacing().
  const double place =
      static_cast<double>(layer * (options.controls - 1)) / static_cast<double>(options.layers);
  const std::int64_t first = std::min(static_cast<std::int64_t>(place), options.controls - 2);
  return {first, place - static_cast<double>(first)};
}

}  // namespace plait::odenet
