#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "models/cross_entropy.h"
#include "tools/gpu_checks/check.h"

namespace plait::gpu_checks {
namespace {

constexpr std::int64_t kRows = 48;
constexpr double kFactor = 3;  // of the loss

struct Precision {
  const char* name;
  at::ScalarType type;
  double unit, least;  // unit roundoff of the gradient's type, and half its smallest positive number
};

// NaN stays one.
double Worst(const at::Tensor& ratios) { return ratios.max().item<double>(); }

// Largest error in units of its bound, which models/cross_entropy_test.cc derives.
double ErrorInBounds(const Precision& precision, std::int64_t classes, at::Device device) {
  at::Tensor values = at::randn({kRows, classes}, at::kDouble).mul_(3).to(precision.type);
  values.select(1, 1).fill_(-std::numeric_limits<double>::infinity());
  at::Tensor targets = at::randint(2, classes, {kRows}, at::kLong);
  targets[5] = targets[6] = -1;  // ignored
  const at::Tensor logits = values.to(device).requires_grad_(true);
  const models::LossSum loss = models::CrossEntropySum(logits, targets.to(device));
  const at::Tensor actual =
      torch::autograd::grad({loss.sum * kFactor}, {logits})[0].to(at::kCPU, at::kDouble);

  const at::Tensor exact = values.to(at::kDouble).requires_grad_(true);
  const at::Tensor expected =
      at::cross_entropy_loss(exact, targets, {}, at::Reduction::Sum, /*ignore_index=*/-1);
  const at::Tensor gradient = torch::autograd::grad({expected * kFactor}, {exact})[0];
  const at::Tensor log = at::log_softmax(exact.detach(), 1);
  const double largest = -log.masked_select(log.isfinite()).min().item<double>();
  const double of_log = (4 * largest + std::sqrt(static_cast<double>(classes)) + 8) * 0x1p-24;
  const at::Tensor bound =
      log.exp() * (of_log * kFactor) + gradient.abs() * (4 * 0x1p-24 + precision.unit) + precision.least;
  const double value = expected.item<double>();
  const double of_loss = std::abs(loss.sum.item<double>() - value) /
                         (kRows * of_log + (std::sqrt(static_cast<double>(kRows)) + 8) * 0x1p-24 * value);
  const double of_gradient = Worst((actual - gradient).abs() / bound);
  return std::isnan(of_loss) || of_loss > of_gradient ? of_loss : of_gradient;
}

}  // namespace

Result CheckCrossEntropy(const Context& context) {
  double worst = 0;
  std::string numbers;
  for (const Precision& precision : {Precision{"float32", at::kFloat, 0x1p-24, 0x1p-150},
                                     Precision{"bfloat16", at::kBFloat16, 0x1p-8, 0x1p-134},
                                     Precision{"float16", at::kHalf, 0x1p-11, 0x1p-25}}) {
    double of_type = 0;
    for (const std::int64_t classes : {10, 3001, 50257, 50304}) {
      const double error = ErrorInBounds(precision, classes, context.device);
      if (std::isnan(error) || error > of_type) of_type = error;
    }
    absl::StrAppend(&numbers, numbers.empty() ? "" : "; ", precision.name, ": ",
                    Compared(of_type, 1).numbers);
    if (std::isnan(of_type) || of_type > worst) worst = of_type;
  }
  return {Compared(worst, 1).outcome, numbers + " (units of the bound of rounding)"};
}

}  // namespace plait::gpu_checks
