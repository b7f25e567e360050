#include "mgrit/layer_parallel/testing/residual.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/tanh.h>
#include <torch/csrc/autograd/autograd.h>

namespace plait::mgrit::testing {

at::Tensor Numbers(std::vector<std::int64_t> sizes, std::uint64_t seed) {
  at::Tensor tensor = at::empty(sizes, at::kDouble);
  double* data = tensor.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    data[i] = static_cast<double>(seed >> 11) * 0x1p-52 - 1.0;
  }
  return tensor;
}

Residual::Residual(std::uint64_t seed, at::ScalarType dtype, double scale, const at::Tensor& tied_bias)
    : weight((Numbers({kWidth, kWidth}, seed) * scale).to(dtype).requires_grad_(true)),
      bias(tied_bias.defined() ? tied_bias
                               : (Numbers({kWidth}, seed + 1000) * scale).to(dtype).requires_grad_(true)) {}

models::BlockState Residual::Forward(const models::BlockState& in, const models::BlockContext& context) {
  calls.push_back(context);
  return {in.hidden + context.dt * at::tanh(at::addmm(bias, in.hidden, weight.t()))};
}

at::Tensor SerialForward(const BlockOf& block_of, std::int64_t steps, double final_time, at::Tensor u) {
  for (std::int64_t step = 0; step < steps; ++step) {
    u = block_of(step)->Forward({u}, {.dt = final_time / static_cast<double>(steps), .step = step}).hidden;
  }
  return u;
}

at::Tensor LossOf(const at::Tensor& u) { return (u * Numbers(u.sizes().vec(), 77).to(u.dtype())).sum(); }

std::vector<at::Tensor> Gradients(const at::Tensor& loss, const std::vector<at::Tensor>& leaves) {
  return torch::autograd::grad({loss}, leaves);
}

double RelativeError(const at::Tensor& x, const at::Tensor& exact) {
  const at::NoGradGuard no_grad;
  const at::Tensor reference = exact.to(at::kDouble);
  return (x.to(at::kDouble) - reference).norm().item<double>() / reference.norm().item<double>();
}

}  // namespace plait::mgrit::testing
