// Weights of hot experts on ranks that are not their home, and the way of their gradients back.
//
//   ReplicaFetch fetch(comm, placement, home_weights);       // starts
//   const ExpertWeights replicas = fetch.Wait();             // of this rank's replica slots, in their order
//   ... backward ...
//   ReduceToHome(comm, placement, gradients_of_replicas, gradients_of_home);
//
// Only the home rank has parameters, gradients and optimizer states. A replica lives from the forward pass that fetches it
// until its backward pass: no step can come between, so that none is ever stale. The home rank adds what comes back to its own gradient in the
// order of ranks: the same bits every time. Per replica and pass an expert's parameters travel once there and their gradients
// once back. Collective along the expert-parallel group, where any rank of the placement has a replica; else nothing.
#ifndef PLAIT_PARALLEL_MOE_REPLICAS_H_
#define PLAIT_PARALLEL_MOE_REPLICAS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "comm/communicator.h"
#include "comm/tensor_collectives.h"
#include "parallel/moe/experts.h"
#include "parallel/moe/placement.h"

namespace plait::moe {

// Calls `visit` with each member of `a` that is defined there, and the same one of `b`.
void ForEachTensor(const ExpertWeights& a, ExpertWeights& b,
                   const std::function<void(const at::Tensor& of_a, at::Tensor& of_b)>& visit);

bool HasReplicas(const ExpertPlacement& placement);

class ReplicaFetch {
 public:
  ReplicaFetch(const comm::Communicator& comm, const ExpertPlacement& placement, const ExpertWeights& home);
  // Undefined tensors where no rank has a replica.
  ExpertWeights Wait();

 private:
  ExpertWeights replicas_;
  std::vector<comm::TensorWork> work_;
};

// `of_replicas`: (replicas of this rank, ...); is added to `of_home` of their home ranks.
void ReduceToHome(const comm::Communicator& comm, const ExpertPlacement& placement,
                  const ExpertWeights& of_replicas, ExpertWeights& of_home);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_REPLICAS_H_
