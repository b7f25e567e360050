#include "tools/gru_training/finite.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>

#include <cmath>

namespace plait::gru_training {
namespace {

bool IsFinite(const at::Tensor& tensor) { return at::isfinite(tensor).all().item<bool>(); }

}  // namespace

double GradientNorm(const NamedTensors& parameters) {
  const at::NoGradGuard no_grad;
  double sum = 0;
  for (const auto& [name, parameter] : parameters) {
    if (!parameter.grad().defined()) continue;
    const double norm =
        at::linalg_vector_norm(parameter.grad(), 2, at::OptionalIntArrayRef(), false, at::kDouble)
            .item<double>();
    sum += norm * norm;
  }
  return std::sqrt(sum);
}

std::string FirstNonFinite(const NamedTensors& parameters) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, parameter] : parameters) {
    if (!IsFinite(parameter)) return "parameter " + name;
  }
  for (const auto& [name, parameter] : parameters) {
    if (parameter.grad().defined() && !IsFinite(parameter.grad())) return "gradient of " + name;
  }
  return "";
}

}  // namespace plait::gru_training
