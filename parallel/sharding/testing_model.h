// A small network for tests of the engine: a tied embedding as root, residual blocks with a norm's scale, a
// matrix and a bias, and a root unit behind them.
//
//   TestingModel model(at::kDouble);
//   auto dp = DataParallel::Create(axes, model.Units(), options, ...);
//   model.run = [&](std::size_t block, const auto& forward, const at::Tensor& x) { return dp->Run(...); };
//   model.Loss(x, y)    // (batch, kWidth) both; the sum of squares over the samples
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

// Numbers in [-1, 1) from a recurrence: the same on every rank.
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
  static constexpr std::int64_t kWidth = 7;  // nothing divides
  static constexpr int kBlocks = 3;

  explicit TestingModel(at::ScalarType type, at::Device device = at::kCPU) : units(MakeUnits(type, device)) {
    if (device == at::kMeta) return;
    for (std::size_t u = 0; u < units.size(); ++u) Initialize(u);
  }

  static std::vector<ParameterUnit> MakeUnits(at::ScalarType type, at::Device device) {
    const auto parameter = [&](std::vector<std::int64_t> sizes) {
      return at::empty(sizes, at::TensorOptions(type).device(device)).requires_grad_(true);
    };
    std::vector<ParameterUnit> units;
    units.push_back(
        {"root", {{"bias", parameter({kWidth})}, {"embedding", parameter({kWidth, kWidth})}}, true});
    for (int block = 0; block < kBlocks; ++block) {
      const std::string name = "block." + std::to_string(block);
      units.push_back({name,
                       {{name + ".scale", parameter({kWidth})},
                        {name + ".weight", parameter({kWidth, kWidth})},
                        {name + ".bias", parameter({kWidth})}}});
    }
    units.push_back({"nothing", {}, true});
    units.push_back({"end", {{"end.scale", parameter({kWidth})}}, true});
    return units;
  }

  // Depends on the parameter alone.
  void Initialize(std::size_t unit) const {
    const at::NoGradGuard no_grad;
    std::uint64_t seed = 1000 * unit;
    for (const auto& [name, parameter] : units[unit].parameters) {
      parameter.copy_(TestNumbers(parameter.sizes().vec(), ++seed));
    }
  }

  at::Tensor Forward(const at::Tensor& x) const {
    const at::Tensor& embedding = units[0].parameters[1].second;
    at::Tensor h = at::mm(x, embedding) + units[0].parameters[0].second;
    for (std::size_t block = 0; block < blocks_used; ++block) {
      const auto& p = units[block + 1].parameters;
      h = run(
          block,
          [&p](const at::Tensor& in) {
            return in + at::tanh(at::mm(in * p[0].second, p[1].second) + p[2].second);
          },
          h);
    }
    return at::mm(h * units.back().parameters[0].second, embedding.t());
  }

  at::Tensor Loss(const at::Tensor& x, const at::Tensor& y) const {
    const at::Tensor difference = Forward(x) - y;
    return (difference * difference).sum();
  }

  std::vector<ParameterUnit> units;
  std::size_t blocks_used = kBlocks;  // fewer: parameters of the others are not reached
  std::function<at::Tensor(std::size_t, const DataParallel::BlockForward&, const at::Tensor&)> run =
      [](std::size_t, const DataParallel::BlockForward& forward, const at::Tensor& x) { return forward(x); };
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_SHARDING_TESTING_MODEL_H_
