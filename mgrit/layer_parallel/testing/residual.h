// Helpers for tests of LayerParallel: a residual block, the same network run serially, and numbers that are equal on
// all ranks.
#ifndef PLAIT_MGRIT_LAYER_PARALLEL_TESTING_RESIDUAL_H_
#define PLAIT_MGRIT_LAYER_PARALLEL_TESTING_RESIDUAL_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "models/block_model.h"

namespace plait::mgrit::testing {

inline constexpr std::int64_t kWidth = 4;

// Pseudo-random float64 numbers in [-1, 1), the same on every rank.
at::Tensor Numbers(std::vector<std::int64_t> sizes, std::uint64_t seed);

// u + dt tanh(u W^T + b); records its calls.
struct Residual : models::Block {
  // Own weight and bias of `dtype`, with entries in [-scale, scale); or tied_bias, if defined.
  explicit Residual(std::uint64_t seed, at::ScalarType dtype = at::kDouble, double scale = 1,
                    const at::Tensor& tied_bias = {});
  models::BlockState Forward(const models::BlockState& in, const models::BlockContext& context) override;
  std::vector<at::Tensor> Parameters() const override { return {weight, bias}; }

  at::Tensor weight;
  at::Tensor bias;
  std::vector<models::BlockContext> calls;
};

using BlockOf = std::function<std::shared_ptr<models::Block>(std::int64_t step)>;
// One block after another, recorded by plain autograd; every call is final.
at::Tensor SerialForward(const BlockOf& block_of, std::int64_t steps, double final_time, at::Tensor u);

// The weighted sum of all numbers of u.
at::Tensor LossOf(const at::Tensor& u);
// dloss/dleaves.
std::vector<at::Tensor> Gradients(const at::Tensor& loss, const std::vector<at::Tensor>& leaves);

// |x - exact| / |exact|, in float64.
double RelativeError(const at::Tensor& x, const at::Tensor& exact);

}  // namespace plait::mgrit::testing

#endif  // PLAIT_MGRIT_LAYER_PARALLEL_TESTING_RESIDUAL_H_
