// Replicas of the same tensors on all ranks of a group.
//
//   parallel::BroadcastTensors(dp, model.parameters(), /*root=*/0);
//   const parallel::Difference difference = parallel::FirstDifference(dp, model.parameters());
#ifndef PLAIT_PARALLEL_REPLICAS_H_
#define PLAIT_PARALLEL_REPLICAS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "comm/communicator.h"

namespace plait::parallel {

// Collective. All ranks then have the values of rank `root`, whatever they had. Shapes and types are the same
// everywhere; not recorded by autograd.
void BroadcastTensors(const comm::Communicator& comm, const std::vector<at::Tensor>& tensors, int root);

struct Difference {
  int rank = -1;             // the lowest that differs; -1: none
  std::int64_t tensor = -1;  // the first of its tensors that does
};

// Collective. Compares all bits with those of rank 0, so that -0 is not 0 and a NaN equals itself. The same
// answer on all ranks.
Difference FirstDifference(const comm::Communicator& comm, const std::vector<at::Tensor>& tensors);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_REPLICAS_H_
