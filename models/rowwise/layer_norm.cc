#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/rms_norm.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "base/parallel_for.h"
#include "models/rowwise/own_kernels.h"
#include "models/rowwise/rowwise.h"

namespace plait::rowwise {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// `moments`: (2, rows), means and inverse standard deviations; for an RMS norm (1, rows), inverse root mean squares.
template <typename Float>
Float* MeanOf(Float* data, const at::Tensor& moments) {
  return moments.size(0) == 2 ? data : nullptr;
}
template <typename Float>
Float* InverseDeviationOf(Float* data, const at::Tensor& moments) {
  return data + (moments.size(0) - 1) * moments.size(1);
}

template <typename T>
void Forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon,
             const at::Tensor& y, const at::Tensor& moments) {
  const LayerNormForward<T> norm{
      .rows = x.size(0),
      .width = x.size(1),
      .epsilon = static_cast<float>(epsilon),
      .x = DataOf<T>(x),
      .weight = DataOf<T>(weight),
      .bias = DataOf<T>(bias),
      .y = MutableDataOf<T>(y),
      .mean = MeanOf(MutableDataOf<float>(moments), moments),
      .inverse_deviation = InverseDeviationOf(MutableDataOf<float>(moments), moments)};
  ParallelFor(norm.rows, norm.width,
              [&](std::int64_t first, std::int64_t last) { UsableRows<T>()->layer_norm(norm, first, last); });
}

struct Gradients {
  at::Tensor x, weight, bias;
};

template <typename T>
void Backward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& moments,
              const at::Tensor& of_y, const Gradients& gradients) {
  const LayerNormBackward<T> norm{.rows = x.size(0),
                                  .width = x.size(1),
                                  .x = DataOf<T>(x),
                                  .weight = DataOf<T>(weight),
                                  .mean = MeanOf(DataOf<float>(moments), moments),
                                  .inverse_deviation = InverseDeviationOf(DataOf<float>(moments), moments),
                                  .of_y = DataOf<T>(of_y),
                                  .of_x = MutableDataOf<T>(gradients.x),
                                  .of_weight = MutableDataOf<T>(gradients.weight),
                                  .of_bias = MutableDataOf<T>(gradients.bias)};
  ParallelFor(norm.rows, norm.width, [&](std::int64_t first, std::int64_t last) {
    UsableRows<T>()->layer_norm_of_x(norm, first, last);
  });
  const std::int64_t groups = (norm.width + kColumnsTogether - 1) / kColumnsTogether;
  ParallelFor(groups, norm.rows * kColumnsTogether, [&](std::int64_t first, std::int64_t last) {
    UsableRows<T>()->layer_norm_of_parameters(norm, first * kColumnsTogether,
                                              std::min(last * kColumnsTogether, norm.width));
  });
}

class NormFunction : public torch::autograd::Function<NormFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, double epsilon, bool with_mean) {
    const at::Tensor dense = x.contiguous(), scale = weight.contiguous();
    const at::Tensor shift = bias.has_value() ? bias->contiguous() : at::Tensor();
    const at::Tensor y = at::empty_like(dense);
    const at::Tensor moments = at::empty({with_mean ? 2 : 1, x.size(0)}, x.options().dtype(at::kFloat));
    WithType(x, [&]<typename T>(T) { Forward<T>(dense, scale, shift, epsilon, y, moments); });
    context->save_for_backward({dense, scale, moments});
    context->saved_data["bias"] = bias.has_value();
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(),
                "LayerNorm, RmsNorm: their gradients cannot be differentiated again");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1];
    Gradients of{.x = at::empty_like(x), .weight = at::empty_like(weight), .bias = {}};
    if (context->saved_data["bias"].toBool()) of.bias = at::empty_like(weight);
    const at::Tensor of_y = gradients[0].contiguous();
    WithType(x, [&]<typename T>(T) { Backward<T>(x, weight, saved[2], of_y, of); });
    return {of.x, of.weight, of.bias, at::Tensor(), at::Tensor()};
  }
};

bool UsesOwnKernels(const at::Tensor& x, const at::Tensor& weight) {
  PLAIT_CHECK(x.dim() == 2 && weight.dim() == 1 && x.size(1) == weight.size(0))
      << "x of shape " << x.sizes() << ", weight of shape " << weight.sizes()
      << "; expected (rows, width) and (width)";
  return HasOwnKernels(x) && weight.scalar_type() == x.scalar_type();
}

}  // namespace

at::Tensor LayerNorm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon) {
  PLAIT_CHECK(!bias.defined() ||
              (bias.sizes() == weight.sizes() && bias.scalar_type() == weight.scalar_type()))
      << "a bias " << bias.toString() << " of shape " << bias.sizes() << "; expected the weight's "
      << weight.toString() << " of shape " << weight.sizes();
  if (!UsesOwnKernels(x, weight)) return at::layer_norm(x, weight.sizes(), weight, bias, epsilon);
  return NormFunction::apply(x, weight, bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt,
                             epsilon, /*with_mean=*/true);
}

at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  if (!UsesOwnKernels(x, weight)) return at::rms_norm(x, weight.sizes(), weight, epsilon);
  return NormFunction::apply(x, weight, std::nullopt, epsilon, /*with_mean=*/false);
}

}  // namespace plait::rowwise
