// What combinations of axes are compared with: LibTorch's AdamW on one rank, with the settings of a
// ShardedOptimizer, and the comparison of every parameter.
#ifndef PLAIT_TESTS_PARITY_SERIAL_ADAMW_H_
#define PLAIT_TESTS_PARITY_SERIAL_ADAMW_H_

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "parallel/optim/sharded_optimizer.h"
#include "parallel/sharding/data_parallel.h"

namespace torch::optim {
class AdamW;
}

namespace plait::parity {

using NamedTensors = std::map<std::string, at::Tensor>;

class SerialAdamW {
 public:
  // Matrices and larger decay, as everywhere in Plait, but for the positions of a ViT.
  SerialAdamW(const NamedTensors& parameters, const parallel::ShardedOptimizerOptions& settings);
  ~SerialAdamW();
  void ZeroGradients();
  void Step(double clip_norm);

 private:
  std::vector<at::Tensor> parameters_;
  std::unique_ptr<torch::optim::AdamW> optimizer_;
};

struct SerialTraining {
  std::vector<double> losses;  // by step
  NamedTensors parameters;     // at the end
};

NamedTensors NamedParameters(const std::vector<models::ParameterUnit>& units);

// Collective. Expects every parameter that this rank's engine has to be that of one rank, or its part of it,
// relative to the largest element of each.
void ExpectParameters(parallel::DataParallel& dp, const NamedTensors& expected, double tolerance);

}  // namespace plait::parity

#endif  // PLAIT_TESTS_PARITY_SERIAL_ADAMW_H_
