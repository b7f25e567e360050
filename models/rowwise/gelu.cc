#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/rowwise/own_kernels.h"
#include "models/rowwise/rowwise.h"

namespace plait::rowwise {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class GeluFunction : public torch::autograd::Function<GeluFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, bool exact) {
    const GeluKind kind = exact ? GeluKind::kExact : GeluKind::kTanh;
    const at::Tensor dense = x.contiguous(), y = at::empty_like(dense);
    WithType(x, [&]<typename T>(T) {
      at::parallel_for(0, dense.numel(), Grain(1), [&](std::int64_t first, std::int64_t last) {
        UsableRows<T>()->gelu(kind, DataOf<T>(dense) + first, last - first, MutableDataOf<T>(y) + first);
      });
    });
    context->save_for_backward({dense});
    context->saved_data["exact"] = exact;
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor x = context->get_saved_variables()[0], of_y = gradients[0].contiguous();
    const at::Tensor of_x = at::empty_like(x);
    const GeluKind kind = context->saved_data["exact"].toBool() ? GeluKind::kExact : GeluKind::kTanh;
    WithType(x, [&]<typename T>(T) {
      at::parallel_for(0, x.numel(), Grain(1), [&](std::int64_t first, std::int64_t last) {
        UsableRows<T>()->gelu_of_x(kind, DataOf<T>(x) + first, DataOf<T>(of_y) + first, last - first,
                                   MutableDataOf<T>(of_x) + first);
      });
    });
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
