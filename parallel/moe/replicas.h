// Weights of hot experts on ranks that are not their home, fetched once in a step, and the way of their gradients back.
//
//   ReplicaCache cache;
//   cache.StartFetch(comm, placement, home_weights);         // what the micro-batches before have not fetched
//   const ExpertWeights replicas = cache.WaitForFetch();     // of this rank's replica slots, in their order
//   ... backward ...
//   ReduceToHome(comm, placement, gradients_of_replicas, gradients_of_home);
//   cache.EndStep();                                         // the weights have changed
//
// Only the home rank has parameters, gradients and optimizer states. An expert's parameters travel once to each replica in a step, gradients
// once back with each backward pass: the home rank adds what comes back to its own gradient in the order of ranks, the same bits every time, and
// the engine that reduces gradients may do so after any micro-batch.
//
// Replicas have the version of their weights, the number of steps before. One of another version is never used: the graph of a step
// that has ended cannot go backward, and home weights that are not those that were fetched end the process. Collective along the
// expert-parallel group, where any rank of the placement has a replica; else nothing.
#ifndef PLAIT_PARALLEL_MOE_REPLICAS_H_
#define PLAIT_PARALLEL_MOE_REPLICAS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "comm/tensor_collectives.h"
#include "parallel/moe/experts.h"
#include "parallel/moe/placement.h"
#include "parallel/moe/rows.h"

namespace plait::moe {

// Calls `visit` with each member of `a` that is defined there, and the same one of `b`.
void ForEachTensor(const ExpertWeights& a, ExpertWeights& b,
                   const std::function<void(const at::Tensor& of_a, at::Tensor& of_b)>& visit);

bool HasReplicas(const ExpertPlacement& placement);

class ReplicaCache {
 public:
  // The placements of a step only grow (PlanPlacement's `previous`): each has the replicas of the one before, in the same slots.
  void StartFetch(const comm::Communicator& comm, const ExpertPlacement& placement,
                  const ExpertWeights& home);
  // Before the next fetch. Undefined tensors where no rank of the placement has a replica.
  ExpertWeights WaitForFetch();
  // All replicas of the step so far; null: none.
  const ExpertPlacement* placement() const { return placement_.has_value() ? &*placement_ : nullptr; }

  // After an optimizer step: replicas are forgotten.
  void EndStep();
  std::int64_t version() const { return version_; }
  // Of replicas that a graph uses: another version than now is a programming error.
  void CheckVersion(const ExpertPlacement& placement, int rank, std::int64_t version) const;

 private:
  void CheckHomes(const ExpertPlacement& placement, int rank, const ExpertWeights& home);

  std::int64_t version_ = 0;
  std::optional<ExpertPlacement> placement_;
  ExpertWeights replicas_, fetched_;
  RowNumbers arrived_;  // of each fetched replica, in the order of slots: its place among those that arrive
  bool uses_replicas_ = false;
  std::vector<comm::TensorWork> work_;
  at::Tensor samples_;  // (home experts, bytes): some numbers of each, of this version
};

// `of_replicas`: (replicas of this rank, ...); is added to `of_home` of their home ranks.
void ReduceToHome(const comm::Communicator& comm, const ExpertPlacement& placement,
                  const ExpertWeights& of_replicas, ExpertWeights& of_home);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_REPLICAS_H_
