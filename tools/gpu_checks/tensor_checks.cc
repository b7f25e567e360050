#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "mgrit/layer_parallel/layer_parallel.h"
#include "models/gru/cell.h"
#include "tools/gpu_checks/check.h"

namespace plait::gpu_checks {
namespace {

// Numbers in [-1, 1) from a recurrence, on the host.
at::Tensor Numbers(std::vector<std::int64_t> sizes, std::uint64_t seed) {
  at::Tensor tensor = at::empty(sizes, at::kDouble);
  double* data = tensor.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    data[i] = static_cast<double>(seed >> 11) * 0x1p-52 - 1.0;
  }
  return tensor;
}

// Relative to the largest expected element, or to 1. NaN where there is one.
double ErrorOf(const at::Tensor& actual, const at::Tensor& expected) {
  const at::NoGradGuard no_grad;
  const double error = (actual.to(at::kCPU, at::kDouble) - expected).abs().max().item<double>();
  return error / std::max(1.0, expected.abs().max().item<double>());
}

double Worst(double a, double b) { return std::isnan(a) || a > b ? a : b; }

constexpr std::int64_t kBatch = 33, kInput = 9, kHidden = 100, kLayers = 2;

std::vector<at::Tensor> GruParameters() {
  std::vector<at::Tensor> parameters;
  const double bound = 1 / std::sqrt(static_cast<double>(kHidden));
  for (std::int64_t layer = 0; layer < kLayers; ++layer) {
    const std::int64_t input = layer == 0 ? kInput : kHidden;
    for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{3 * kHidden, input},
                                                   {3 * kHidden, kHidden},
                                                   {3 * kHidden},
                                                   {3 * kHidden}}) {
      parameters.push_back(Numbers(sizes, 10 + parameters.size()) * bound);
    }
  }
  return parameters;
}

// One step forward and its adjoint: new state, lambda, and the gradients of the parameters.
std::vector<at::Tensor> StepOf(const at::TensorOptions& options) {
  const std::unique_ptr<gru::GruCell> cell =
      gru::NewOperatorGruCell({.input = kInput, .hidden = kHidden, .layers = kLayers}, options);
  std::vector<at::Tensor> parameters, gradients;
  for (const at::Tensor& p : GruParameters()) {
    parameters.push_back(p.to(options));
    gradients.push_back(at::zeros_like(parameters.back()));
  }
  cell->SetParameters(parameters);
  const gru::GruInputs inputs = cell->PrepareInputs(Numbers({kBatch, 1, kInput}, 1).to(options));
  const at::Tensor state = Numbers({kLayers, kBatch, kHidden}, 2).to(options);
  at::Tensor next = cell->NewState(kBatch), lambda = at::zeros_like(state);
  at::Tensor saved = cell->NewSaved(kBatch), gates = cell->NewGateGradients(kBatch);
  cell->Step(1.0, inputs, 0, state, next, &saved);
  cell->StepAdjoint(1.0, saved, state, Numbers({kLayers, kBatch, kHidden}, 3).to(options), lambda, &gates);
  cell->AddWeightGradients(inputs, {{&gates, &state, &next, 0}}, gradients);
  gradients.insert(gradients.begin(), {next, lambda});
  return gradients;
}

double GruError(const at::TensorOptions& options, const std::vector<at::Tensor>& expected) {
  const std::vector<at::Tensor> actual = StepOf(options);
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) worst = Worst(ErrorOf(actual[i], expected[i]), worst);
  return worst;
}

// u + dt tanh(u W^T + b)
struct Residual : models::Block {
  Residual(std::uint64_t seed, const at::TensorOptions& options)
      : weight(Numbers({8, 8}, seed).to(options).requires_grad_(true)),
        bias(Numbers({8}, seed + 1000).to(options).requires_grad_(true)) {}
  models::BlockState Forward(const models::BlockState& u, const models::BlockContext& context) override {
    return {u.hidden + context.dt * at::tanh(at::addmm(bias, u.hidden, weight.t()))};
  }
  std::vector<at::Tensor> Parameters() const override { return {weight, bias}; }

  at::Tensor weight, bias;
};

constexpr std::int64_t kSteps = 16;
constexpr double kFinalTime = 1.5;

// Final state and gradients of the initial state and the shared block's parameters.
std::vector<at::Tensor> Differentiated(const std::function<at::Tensor(const at::Tensor&)>& forward,
                                       std::vector<at::Tensor> parameters, const at::TensorOptions& options) {
  const at::Tensor start = Numbers({3, 8}, 5).to(options).requires_grad_(true);
  parameters.insert(parameters.begin(), start);
  const at::Tensor end = forward(start);
  std::vector<at::Tensor> results =
      torch::autograd::grad({(end * Numbers({3, 8}, 77).to(options)).sum()}, parameters);
  results.insert(results.begin(), end.detach());
  return results;
}

}  // namespace

// A chain of n multiply-adds rounds by at most n * eps of the sum of its terms' absolute values, which are
// below 4 times the largest result or 4 here.
Result CheckGruCell(const Context& context) {
  const std::vector<at::Tensor> expected = StepOf(at::kDouble);
  const double chain = 4.0 * (kLayers * (3 * kHidden + kInput + 16) + 2 * kBatch);
  const Result wide =
      Compared(GruError(at::TensorOptions(at::kDouble).device(context.device), expected), chain * 0x1p-53);
  // Parameters and inputs are rounded to float32 too: one more rounding per term.
  const Result narrow =
      Compared(GruError(at::TensorOptions(at::kFloat).device(context.device), expected), 2 * chain * 0x1p-24);
  const bool passed = wide.outcome == Outcome::kPassed && narrow.outcome == Outcome::kPassed;
  return {passed ? Outcome::kPassed : Outcome::kFailed,
          "float64: " + wide.numbers + "; float32: " + narrow.numbers};
}

// Converged MGRIT is the serial recurrence: 1e-12 as in layer_parallel_test, far above the rounding of 16
// steps and far below the error of one missing iteration.
Result CheckLayerParallel(const Context& context) {
  const auto host = std::make_shared<Residual>(1, at::kDouble);
  const std::vector<at::Tensor> expected = Differentiated(
      [&](at::Tensor u) {
        for (std::int64_t i = 0; i < kSteps; ++i) {
          u = host->Forward({u}, {.dt = kFinalTime / kSteps}).hidden;
        }
        return u;
      },
      host->Parameters(), at::kDouble);
  const at::TensorOptions options = at::TensorOptions(at::kDouble).device(context.device);
  const auto block = std::make_shared<Residual>(1, options);
  mgrit::LayerParallel net(context.world, block, kSteps, kFinalTime,
                           mgrit::MakeLayerParallelOptions(/*levels=*/2, /*cfactor=*/4, 30, 30));
  const std::vector<at::Tensor> actual =
      Differentiated([&](const at::Tensor& u) { return net.Forward(u); }, block->Parameters(), options);
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) worst = Worst(ErrorOf(actual[i], expected[i]), worst);
  return Compared(worst, 1e-12);
}

}  // namespace plait::gpu_checks
