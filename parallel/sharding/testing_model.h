// A small network for tests of the engine: a tied embedding as root unit, residual blocks with a scale, a matrix and a
// bias, and a root unit at the end.
//
//   TestingModel model(at::kDouble);
//   auto dp = DataParallel::Create(mesh, model.units, options, ...);
//   model.run = [&](std::size_t block, const auto& forward, const auto& x) { return dp->Run(...); };
//   model.Loss(x, y)    // both (batch, kWidth); the sum of squared errors
#ifndef PLAIT_PARALLEL_SHARDING_TESTING_MODEL_H_
#define PLAIT_PARALLEL_SHARDING_TESTING_MODEL_H_

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/tanh.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "parallel/sharding/data_parallel.h"

namespace plait::parallel {

// Pseudorandom numbers in [-1, 1): the same on every rank.
inline at::Tensor TestNumbers(std::vector<std::int64_t> sizes, std::uint64_t seed,
                              at::ScalarType type = at::kDouble) {
  at::Tensor tensor = at::empty(sizes, at::kDouble);
  double* data = tensor.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    data[i] = static_cast<double>(seed >> 11) * 0x1p-52 - 1.0;
  }
  return tensor.to(type);
}

struct TestingModel {
  static constexpr std::int64_t kWidth = 7;  // not divisible by any number of ranks
  static constexpr int kBlocks = 3;

  explicit TestingModel(at::ScalarType type, at::Device device = at::kCPU) : units(MakeUnits(type, device)) {
    if (device == at::kMeta) return;
    for (std::size_t u = 0; u < units.size(); ++u) Initialize(u);
  }

  static std::vector<models::ParameterUnit> MakeUnits(at::ScalarType type, at::Device device) {
    const auto parameter = [&](std::vector<std::int64_t> sizes) {
      return at::empty(sizes, at::TensorOptions(type).device(device)).requires_grad_(true);
    };
    std::vector<models::ParameterUnit> units;
    units.push_back(models::MakeUnit(
        "root", {{"bias", parameter({kWidth})}, {"embedding", parameter({kWidth, kWidth})}}));
    for (int block = 0; block < kBlocks; ++block) {
      const std::string name = "block." + std::to_string(block);
      units.push_back(models::MakeUnit(name,
                                       {{name + ".scale", parameter({kWidth})},
                                        {name + ".weight", parameter({kWidth, kWidth})},
                                        {name + ".bias", parameter({kWidth})}},
                                       block));
    }
    units.push_back(models::MakeUnit("nothing", {}));
    units.push_back(models::MakeUnit("end", {{"end.scale", parameter({kWidth})}}));
    return units;
  }

  // Depends on the parameter alone.
  void Initialize(std::size_t unit) const {
    const at::NoGradGuard no_grad;
    std::uint64_t seed = 1000 * unit;
    for (const models::ParameterSpec& parameter : units[unit].parameters) {
      parameter.tensor.copy_(TestNumbers(parameter.tensor.sizes().vec(), ++seed));
    }
  }

  at::Tensor Forward(const at::Tensor& x) const {
    const at::Tensor& embedding = units[0].parameters[1].tensor;
    at::Tensor h = at::mm(x, embedding) + units[0].parameters[0].tensor;
    for (std::size_t block = 0; block < blocks_used; ++block) {
      const auto& p = units[block + 1].parameters;
      h = run(block,
              [&p](const models::BlockState& in) {
                const at::Tensor& x = in.hidden;
                return models::BlockState{x + at::tanh(at::mm(x * p[0].tensor, p[1].tensor) + p[2].tensor)};
              },
              {h})
              .hidden;
    }
    return at::mm(h * units.back().parameters[0].tensor, embedding.t());
  }

  at::Tensor Loss(const at::Tensor& x, const at::Tensor& y) const {
    const at::Tensor difference = Forward(x) - y;
    return (difference * difference).sum();
  }

  std::vector<models::ParameterUnit> units;
  std::size_t blocks_used = kBlocks;  // fewer: the others get no gradients
  // Runs a block; through DataParallel::Run once an engine has the model.
  using Runner =
      std::function<models::BlockState(std::size_t, const models::BlockForward&, const models::BlockState&)>;
  Runner run = [](std::size_t, const models::BlockForward& forward, const models::BlockState& x) {
    return forward(x);
  };
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_SHARDING_TESTING_MODEL_H_
