#include "models/odenet/own_step.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/parallel_for.h"
#include "models/odenet/kernels/step.h"

namespace plait::odenet {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

const StepKernels& Kernels() {
  static const StepKernels* const kernels = UsableSteps()[0];
  return *kernels;
}

Plane PlaneOf(const at::Tensor& u) { return {u.size(2), u.size(3)}; }

// Multiplications that a kernel does in the time of one element of ParallelFor's cost.
constexpr std::int64_t kMultiplicationsOfNumber = 16;
std::int64_t NumbersOfImage(const at::Tensor& u) {
  return 2 * 9 * u.size(1) * u.numel() / u.size(0) / kMultiplicationsOfNumber;
}

// What the adjoint needs besides u: `middle` and `active` of StepForward. Undefined if nothing is recorded.
struct Kept {
  at::Tensor middle, active;
};

at::Tensor Forward(const at::Tensor& u, at::TensorList theta, double scale, const Kept& kept) {
  const at::Tensor out = at::empty_like(u);
  const StepForward step{
      .channels = u.size(1),
      .plane = PlaneOf(u),
      .scale = static_cast<float>(scale),
      .weight_1 = theta[0].const_data_ptr<float>(),
      .bias_1 = theta[1].const_data_ptr<float>(),
      .weight_2 = theta[2].const_data_ptr<float>(),
      .bias_2 = theta[3].const_data_ptr<float>(),
      .u = u.const_data_ptr<float>(),
      .out = out.mutable_data_ptr<float>(),
      .middle = kept.middle.defined() ? kept.middle.mutable_data_ptr<float>() : nullptr,
      .active = kept.active.defined() ? kept.active.mutable_data_ptr<std::int8_t>() : nullptr};
  ParallelFor(u.size(0), NumbersOfImage(u), [&](std::int64_t first, std::int64_t last) {
    std::vector<float> scratch(step.scratch());
    Kernels().forward(step, first, last, scratch.data());
  });
  return out;
}

// Sums over the groups, in order; one tensor for each of theta.
variable_list ThetaGradients(at::TensorList theta, const at::Tensor& groups) {
  variable_list gradients;
  const float* part = groups.const_data_ptr<float>();
  for (const at::Tensor& parameter : theta) {
    gradients.push_back(at::zeros(parameter.sizes(), groups.options()));
    float* const sums = gradients.back().mutable_data_ptr<float>();
    for (std::int64_t group = 0; group < groups.size(0); ++group) {
      for (std::int64_t i = 0; i < parameter.numel(); ++i) sums[i] += part[group * groups.size(1) + i];
    }
    part += parameter.numel();
  }
  return gradients;
}

class StepFunction : public torch::autograd::Function<StepFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& u, const at::Tensor& weight_1,
                            const at::Tensor& bias_1, const at::Tensor& weight_2, const at::Tensor& bias_2,
                            double scale) {
    const Plane plane = PlaneOf(u);
    const std::int64_t channels = u.size(0) * u.size(1);
    const Kept kept{at::empty({channels, plane.size()}, u.options()),
                    at::empty({channels, plane.whole_vectors()}, u.options().dtype(at::kChar))};
    context->save_for_backward({u, weight_1, bias_1, weight_2, bias_2, kept.middle, kept.active});
    context->saved_data["scale"] = scale;
    return Forward(u, {weight_1, bias_1, weight_2, bias_2}, scale, kept);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(), "OdeNet: the gradient of a step cannot be differentiated again");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &u = saved[0], of_out = gradients[0].contiguous();
    const bool of_theta = context->needs_input_grad(1) || context->needs_input_grad(2) ||
                          context->needs_input_grad(3) || context->needs_input_grad(4);
    StepBackward step{.channels = u.size(1),
                      .plane = PlaneOf(u),
                      .scale = static_cast<float>(context->saved_data["scale"].toDouble()),
                      .images = u.size(0),
                      .weight_1 = saved[1].const_data_ptr<float>(),
                      .weight_2 = saved[3].const_data_ptr<float>(),
                      .u = u.const_data_ptr<float>(),
                      .middle = saved[5].const_data_ptr<float>(),
                      .active = saved[6].const_data_ptr<std::int8_t>(),
                      .of_out = of_out.const_data_ptr<float>()};
    variable_list result(6);
    if (context->needs_input_grad(0)) {
      result[0] = at::empty_like(u);
      step.of_u = result[0].mutable_data_ptr<float>();
    }
    at::Tensor groups;
    if (of_theta) {
      groups = at::empty({step.groups(), step.parameters()}, u.options());
      step.of_parameters = groups.mutable_data_ptr<float>();
    }
    ParallelFor(step.groups(), StepBackward::kGroup * NumbersOfImage(u),
                [&](std::int64_t first, std::int64_t last) {
                  std::vector<float> scratch(step.scratch());
                  Kernels().backward(step, first, last, scratch.data());
                });
    if (!of_theta) return result;
    const variable_list theta = ThetaGradients({saved[1], saved[2], saved[3], saved[4]}, groups);
    std::copy(theta.begin(), theta.end(), result.begin() + 1);
    return result;
  }
};

}  // namespace

bool HasOwnStep(const at::Tensor& u, at::TensorList theta) {
  if (!u.is_cpu() || u.dim() != 4 || u.size(1) > kMostChannels || u.numel() == 0) return false;
  if (at::autocast::is_autocast_enabled(at::kCPU)) return false;
  const auto fits = [](const at::Tensor& t) { return t.is_cpu() && t.scalar_type() == at::kFloat; };
  return fits(u) && std::all_of(theta.begin(), theta.end(), fits);
}

at::Tensor OwnStep(const at::Tensor& u, at::TensorList theta, double step) {
  std::vector<at::Tensor> dense;
  for (const at::Tensor& tensor : theta) dense.push_back(tensor.contiguous());
  if (!at::GradMode::is_enabled()) return Forward(u.contiguous(), dense, step, {});
  return StepFunction::apply(u.contiguous(), dense[0], dense[1], dense[2], dense[3], step);
}

}  // namespace plait::odenet
