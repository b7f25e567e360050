#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/silu.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include "base/check.h"
#include "models/rowwise/activation.h"
#include "models/rowwise/own_kernels.h"
#include "models/rowwise/rowwise.h"

namespace plait::rowwise {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Activation ActivationOf(bool exact) { return exact ? Activation::kGelu : Activation::kGeluTanh; }

// Saves the slopes instead of x: one more exponential in the forward pass, and the backward pass is a single product.
class GeluFunction : public torch::autograd::Function<GeluFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, bool exact) {
    const at::Tensor dense = x.contiguous(), y = at::empty_like(dense), slope = at::empty_like(dense);
    Activate({ActivationOf(exact), dense}, y, slope);
    context->save_for_backward({slope});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(), "Gelu: its gradient cannot be differentiated again");
    return {gradients[0] * context->get_saved_variables()[0], at::Tensor()};
  }
};

class SiluTimesFunction : public torch::autograd::Function<SiluTimesFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate, const at::Tensor& x) {
    const ActivationInputs in = {Activation::kSilu, gate.contiguous(), x.contiguous()};
    const at::Tensor y = at::empty_like(in.x);
    Activate(in, y);
    context->save_for_backward({in.x, in.factor});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(), "SiluTimes: its gradient cannot be differentiated again");
    const variable_list saved = context->get_saved_variables();
    const ActivationResults of = {at::empty_like(saved[0]), at::empty_like(saved[1])};
    ActivateBackward({Activation::kSilu, saved[0], saved[1]}, gradients[0].contiguous(), of);
    return {of.of_x, of.of_factor};
  }
};

}  // namespace

at::Tensor Gelu(const at::Tensor& x, GeluKind kind) {
  const bool exact = kind == GeluKind::kExact;
  if (!HasOwnKernels(x)) return at::gelu(x, exact ? "none" : "tanh");
  if (at::GradMode::is_enabled() && x.requires_grad()) return GeluFunction::apply(x, exact);
  const at::Tensor dense = x.contiguous(), y = at::empty_like(dense);
  Activate({ActivationOf(exact), dense}, y);
  return y;
}

at::Tensor SiluTimes(const at::Tensor& gate, const at::Tensor& x) {
  PLAIT_CHECK(gate.sizes() == x.sizes() && gate.scalar_type() == x.scalar_type())
      << "a gate of shape " << gate.sizes() << ", values of shape " << x.sizes()
      << "; expected one shape and type";
  if (!HasOwnKernels(gate)) return at::silu(gate) * x;
  return SiluTimesFunction::apply(gate, x);
}

}  // namespace plait::rowwise
