// What combinations of axes are compared with: LibTorch's AdamW on one rank, with the settings of a
// ShardedOptimizer, and the comparison of every parameter.
#ifndef PLAIT_TESTS_PARITY_SERIAL_ADAMW_H_
#define PLAIT_TESTS_PARITY_SERIAL_ADAMW_H_

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "parallel/optim/sharded_optimizer.h"
#include "parallel/sharding/data_parallel.h"

namespace plait::parity {

using NamedTensors = std::map<std::string, at::Tensor>;

// Matrices and larger decay, as everywhere in Plait.
inline torch::optim::AdamW SerialAdamW(const std::vector<at::Tensor>& parameters,
                                       const parallel::ShardedOptimizerOptions& settings) {
  std::vector<at::Tensor> decayed, others;
  for (const at::Tensor& p : parameters) (p.dim() >= 2 ? decayed : others).push_back(p);
  const auto options = [&settings](double decay) {
    auto o = std::make_unique<torch::optim::AdamWOptions>(settings.lr);
    o->betas({settings.beta1, settings.beta2}).eps(settings.epsilon).weight_decay(decay);
    return o;
  };
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(decayed, options(settings.weight_decay));
  groups.emplace_back(others, options(0));
  return torch::optim::AdamW(groups, torch::optim::AdamWOptions(settings.lr));
}

struct SerialTraining {
  std::vector<double> losses;  // by step
  NamedTensors parameters;     // at the end
};

inline NamedTensors NamedParameters(const std::vector<models::ParameterUnit>& units) {
  NamedTensors named;
  for (const models::ParameterUnit& unit : units) {
    for (const models::ParameterSpec& p : unit.parameters) named[p.name] = p.tensor;
  }
  return named;
}

inline std::vector<at::Tensor> TensorsOf(const NamedTensors& named) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : named) tensors.push_back(tensor);
  return tensors;
}

// Collective. Every parameter that this rank's engine has, relative to the largest element of each.
inline void ExpectParameters(parallel::DataParallel& dp, const NamedTensors& expected, double tolerance) {
  dp.VisitUnsharded([&](const models::ParameterUnit& unit) {
    for (const models::ParameterSpec& p : unit.parameters) {
      const at::Tensor& serial = expected.at(p.name);
      const double difference = (p.tensor.detach() - serial.detach()).abs().max().item<double>();
      EXPECT_LE(difference / serial.abs().max().item<double>(), tolerance) << p.name;
    }
  });
}

}  // namespace plait::parity

#endif  // PLAIT_TESTS_PARITY_SERIAL_ADAMW_H_
