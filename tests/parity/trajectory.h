// The same training on one rank with LibTorch's optimizer, and on many ranks with the sharding engine.
//
//   const Trajectory serial = SerialTrajectory(ModelKind::kGpt, at::kDouble);
//   const Trajectory mine = ParallelTrajectory(ModelKind::kGpt, at::kDouble, setting, world);
//   EXPECT_LE(LargestDifference(mine, serial), 1e-12);
#ifndef PLAIT_TESTS_PARITY_TRAJECTORY_H_
#define PLAIT_TESTS_PARITY_TRAJECTORY_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "parallel/sharding/strategy.h"
#include "tests/parity/faults.h"
#include "tests/parity/parity_model.h"

namespace plait::parity {

inline constexpr int kMostSteps = 20;
// An epsilon of the size of gradients: with a small one AdamW hides a wrong scale of them.
inline constexpr double kLr = 1e-3, kBeta1 = 0.9, kBeta2 = 0.95, kEpsilon = 1e-3, kDecay = 0.1, kClip = 0.05;

struct Trajectory {
  std::vector<double> losses;          // of the whole batch, by step
  std::vector<at::Tensor> parameters;  // at the end
};

struct Setting {
  parallel::Strategy strategy = parallel::Strategy::kDdp;
  int replicas = 1, shards = 1;
  int passes = 1;  // micro-batches
  bool reduce_each = false;
  bool checkpoints_activations = false;
  bool offloads = false;  // moments in a file
  bool offloads_masters = false;
  bool offloads_parameters = false;                         // of fsdp, and masters
  at::ScalarType compute_type = at::ScalarType::Undefined;  // of a GPT, which needs no other inputs
  Fault fault = Fault::kNone;
};
std::string TextOf(const Setting& setting);

// Collective; trains on the first rank. `perturbation`: relative change of every initial parameter, with pseudo-random signs.
Trajectory SerialTrajectory(ModelKind kind, at::ScalarType type, double perturbation = 0);
// Collective over `world`, of setting.replicas x setting.shards ranks.
Trajectory ParallelTrajectory(ModelKind kind, at::ScalarType type, const Setting& setting,
                              const comm::Communicator& world);

// The largest difference of losses, relative to b's, and of parameters, relative to the largest element of each of b's.
double LargestDifference(const Trajectory& a, const Trajectory& b);

}  // namespace plait::parity

#endif  // PLAIT_TESTS_PARITY_TRAJECTORY_H_
