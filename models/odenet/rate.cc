#include "models/odenet/rate.h"

#include <ATen/ops/conv1d.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/where.h>

#include <algorithm>

#include "base/check.h"

namespace plait::odenet {
namespace {

constexpr std::int64_t kWidth = 3;

std::vector<std::int64_t> WeightShape(Form form, std::int64_t in, std::int64_t out) {
  if (form == Form::kDense) return {out, in};
  if (form == Form::kConv1d) return {out, in, kWidth};
  return {out, in, kWidth, kWidth};
}

// The parabola that joins 0 and x with their slopes at +-0.1.
at::Tensor SmoothRelu(const at::Tensor& x) {
  constexpr double kCorner = 0.1;
  const at::Tensor parabola = (x + kCorner).square() / (4 * kCorner);
  return at::where(x.abs() < kCorner, parabola, at::relu(x));
}

}  // namespace

double OdeNetOptions::spacing() const {
  if (time_weights == TimeWeights::kPerLayer) return step();
  const double whole = step() * static_cast<double>(layers);
  return whole / static_cast<double>(time_weights == TimeWeights::kPiecewise ? controls : controls - 1);
}

Affine::Affine(Form form, std::int64_t in, std::int64_t out, const at::TensorOptions& options)
    : weight(register_parameter("weight", at::empty(WeightShape(form, in, out), options))),
      bias(register_parameter("bias", at::empty({out}, options))) {}

at::Tensor Apply(Form form, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (form == Form::kDense) return at::linear(x, weight, bias);
  if (form == Form::kConv1d) return at::conv1d(x, weight, bias, /*stride=*/1, /*padding=*/1);
  return at::conv2d(x, weight, bias, /*stride=*/1, /*padding=*/1);
}

at::Tensor Activate(Activation activation, const at::Tensor& x) {
  if (activation == Activation::kTanh) return at::tanh(x);
  return activation == Activation::kRelu ? at::relu(x) : SmoothRelu(x);
}

Rate::Rate(const OdeNetOptions& options, const at::TensorOptions& tensor_options) {
  const auto add = [&](const char* name) {
    parts.push_back(register_module(
        name, std::make_shared<Affine>(options.form, options.channels, options.channels, tensor_options)));
  };
  if (options.form == Form::kDense) {
    add("linear");
  } else {
    add("conv1");
    add("conv2");
  }
}

Theta Rate::theta() const {
  Theta theta;
  for (const auto& part : parts) theta.insert(theta.end(), {part->weight, part->bias});
  return theta;
}

at::Tensor EvaluateRate(const OdeNetOptions& options, const Theta& theta, const at::Tensor& u) {
  at::Tensor value = u;
  for (std::size_t i = 0; i < theta.size(); i += 2) {
    value = Activate(options.activation, Apply(options.form, value, theta[i], theta[i + 1]));
  }
  return value;
}

TimePoint PointOf(const OdeNetOptions& options, std::int64_t layer) {
  if (options.time_weights == TimeWeights::kPerLayer) return {layer};
  if (options.time_weights == TimeWeights::kPiecewise) return {layer / (options.layers / options.controls)};
  // The left end of the layer's step, in spacings.
  const double place = static_cast<double>(layer * (options.controls - 1)) / static_cast<double>(options.layers);
  const std::int64_t first = std::min(static_cast<std::int64_t>(place), options.controls - 2);
  return {first, place - static_cast<double>(first)};
}

}  // namespace plait::odenet
