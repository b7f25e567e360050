#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/rowwise/activation.h"
#include "models/rowwise/own_kernels.h"
#include "models/rowwise/rowwise.h"

namespace plait::rowwise {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Activation ActivationOf(bool exact) { return exact ? Activation::kGelu : Activation::kGeluTanh; }

class GeluFunction : public torch::autograd::Function<GeluFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, bool exact) {
    const at::Tensor dense = x.contiguous(), y = at::empty_like(dense);
    Activate({ActivationOf(exact), dense}, y);
    context->save_for_backward({dense});
    context->saved_data["exact"] = exact;
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor x = context->get_saved_variables()[0], of_x = at::empty_like(x);
    ActivateBackward({ActivationOf(context->saved_data["exact"].toBool()), x}, gradients[0].contiguous(),
                     {of_x});
    return {of_x, at::Tensor()};
  }
};

}  // namespace

at::Tensor Gelu(const at::Tensor& x, GeluKind kind) {
  const bool exact = kind == GeluKind::kExact;
  if (!HasOwnKernels(x)) return at::gelu(x, exact ? "none" : "tanh");
  return GeluFunction::apply(x, exact);
}

}  // namespace plait::rowwise
