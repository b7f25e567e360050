#include "models/linear/linear.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstddef>
#include <optional>

#include "base/check.h"
#include "models/linear/multiply.h"

namespace plait::linear {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class LinearFunction : public torch::autograd::Function<LinearFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias,
                            const std::optional<at::Tensor>& residual) {
    context->save_for_backward({x, weight});
    context->saved_data["bias"] = bias.has_value();
    context->saved_data["residual"] = residual.has_value();
    return Multiply(x, weight.t(),
                    {.bias = bias.value_or(at::Tensor()), .residual = residual.value_or(at::Tensor())});
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(), "Linear: its gradient cannot be differentiated again");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &gradient = gradients[0];
    variable_list of_inputs(4);
    if (context->needs_input_grad(0)) of_inputs[0] = Multiply(gradient, weight);
    if (context->needs_input_grad(1)) of_inputs[1] = Multiply(gradient.t(), x);
    // needs_input_grad counts only the tensors that are present.
    std::size_t input = 2;
    if (context->saved_data["bias"].toBool() && context->needs_input_grad(input++))
      of_inputs[2] = gradient.sum(0);
    if (context->saved_data["residual"].toBool() && context->needs_input_grad(input)) of_inputs[3] = gradient;
    return of_inputs;
  }
};

std::optional<at::Tensor> IfDefined(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional<at::Tensor>(tensor) : std::nullopt;
}

// Own products bypass autocast, which LibTorch's operators implement.
bool UsesOwnProducts(const at::Tensor& x, const at::Tensor& weight) {
  if (!x.is_meta() && at::autocast::is_autocast_enabled(x.device().type())) return false;
  return x.size(0) >= kFewestRows && weight.scalar_type() == x.scalar_type() && HasOwnProducts(x) &&
         HasOwnProducts(weight);
}

void CheckShapes(const at::Tensor& x, const at::Tensor& weight) {
  PLAIT_CHECK(x.dim() == 2 && weight.dim() == 2 && x.size(1) == weight.size(1))
      << "x of shape " << x.sizes() << ", weight of shape " << weight.sizes()
      << "; expected (rows, in) and (out, in)";
}

}  // namespace

at::Tensor Product(const at::Tensor& left, const at::Tensor& right, const at::Tensor& addend) {
  const at::NoGradGuard not_recorded;
  const bool same = left.scalar_type() == right.scalar_type();
  if (same && left.size(0) >= kFewestRows && HasOwnProducts(left) && HasOwnProducts(right)) {
    return Multiply(left, right, {.bias = {}, .residual = addend});
  }
  return addend.defined() ? at::addmm(addend, left, right) : at::mm(left, right);
}

at::Tensor Linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  CheckShapes(x, weight);
  if (!UsesOwnProducts(x, weight)) return at::linear(x, weight, bias);
  return LinearFunction::apply(x, weight, IfDefined(bias), std::nullopt);
}

at::Tensor AddLinear(const at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight,
                     const at::Tensor& bias) {
  CheckShapes(x, weight);
  PLAIT_CHECK(residual.dim() == 2 && residual.size(0) == x.size(0) && residual.size(1) == weight.size(0))
      << "a residual of shape " << residual.sizes() << ", expected (" << x.size(0) << ", " << weight.size(0)
      << ")";
  if (!UsesOwnProducts(x, weight)) {
    if (!bias.defined()) return at::addmm(residual, x, weight.t());
    return at::linear(x, weight, bias).add_(residual);
  }
  return LinearFunction::apply(x, weight, IfDefined(bias), IfDefined(residual));
}

}  // namespace plait::linear
