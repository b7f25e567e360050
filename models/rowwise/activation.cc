#include "models/rowwise/activation.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <ATen/ops/threshold_backward.h>

#include "base/check.h"
#include "base/parallel_for.h"
#include "models/rowwise/own_kernels.h"

namespace plait::rowwise {
namespace {

at::Tensor ByLibTorch(Activation f, const at::Tensor& x) {
  switch (f) {
    case Activation::kGelu:
      return at::gelu(x, "none");
    case Activation::kGeluTanh:
      return at::gelu(x, "tanh");
    case Activation::kRelu:
      return at::relu(x);
    case Activation::kSilu:
      break;
  }
  return at::silu(x);
}

at::Tensor GradientByLibTorch(Activation f, const at::Tensor& x, const at::Tensor& of_y) {
  switch (f) {
    case Activation::kGelu:
      return at::gelu_backward(of_y, x, "none");
    case Activation::kGeluTanh:
      return at::gelu_backward(of_y, x, "tanh");
    case Activation::kRelu:
      return at::threshold_backward(of_y, x, 0);
    case Activation::kSilu:
      break;
  }
  return at::silu_backward(of_y, x);
}

void BackwardByLibTorch(const ActivationInputs& in, const at::Tensor& of_y,
                        const ActivationResults& results) {
  const bool has_factor = in.factor.defined();
  const at::Tensor of_f = has_factor ? of_y * in.factor : of_y;
  if (has_factor || results.y.defined()) {
    const at::Tensor f = ByLibTorch(in.f, in.x);
    if (has_factor) results.of_factor.copy_(of_y * f);
    if (results.y.defined()) results.y.copy_(has_factor ? f * in.factor : f);
  }
  results.of_x.copy_(GradientByLibTorch(in.f, in.x, of_f));
}

void CheckContiguous(const at::Tensor& tensor) {
  PLAIT_CHECK(!tensor.defined() || tensor.is_contiguous())
      << "expected a contiguous tensor, not one of strides " << tensor.strides();
}

}  // namespace

void Activate(const ActivationInputs& in, const at::Tensor& y, const at::Tensor& slope) {
  const at::NoGradGuard not_recorded;
  for (const at::Tensor& tensor : {in.x, in.factor, y, slope}) CheckContiguous(tensor);
  if (!HasOwnKernels(in.x)) {
    PLAIT_CHECK(!slope.defined()) << "slopes of " << in.x.scalar_type() << ", for which there are no kernels";
    const at::Tensor f = ByLibTorch(in.f, in.x);
    y.copy_(in.factor.defined() ? f * in.factor : f);
    return;
  }
  WithType(in.x, [&]<typename T>(T) {
    const ActivationForward<T> pass{.f = in.f,
                                    .x = DataOf<T>(in.x),
                                    .factor = DataOf<T>(in.factor),
                                    .y = MutableDataOf<T>(y),
                                    .slope = MutableDataOf<T>(slope)};
    ParallelFor(in.x.numel(), 1,
                [&](std::int64_t first, std::int64_t last) { UsableRows<T>()->activate(pass, first, last); });
  });
}

void ActivateBackward(const ActivationInputs& in, const at::Tensor& of_y, const ActivationResults& results) {
  const at::NoGradGuard not_recorded;
  for (const at::Tensor& tensor : {in.x, in.factor, of_y, results.of_x, results.of_factor, results.y}) {
    CheckContiguous(tensor);
  }
  if (!HasOwnKernels(in.x)) return BackwardByLibTorch(in, of_y, results);
  WithType(in.x, [&]<typename T>(T) {
    const ActivationBackward<T> pass{.f = in.f,
                                     .x = DataOf<T>(in.x),
                                     .factor = DataOf<T>(in.factor),
                                     .of_y = DataOf<T>(of_y),
                                     .of_x = MutableDataOf<T>(results.of_x),
                                     .of_factor = MutableDataOf<T>(results.of_factor),
                                     .y = MutableDataOf<T>(results.y)};
    ParallelFor(in.x.numel(), 1, [&](std::int64_t first, std::int64_t last) {
      UsableRows<T>()->activate_backward(pass, first, last);
    });
  });
}

}  // namespace plait::rowwise
