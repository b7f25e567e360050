// Replicas of hot experts on other ranks: their weights, fetched once per step, and the reduction of their gradients.
//
//   ReplicaCache cache;
//   cache.StartFetch(comm, placement, home_weights);         // what earlier micro-batches have not fetched
//   const ExpertWeights replicas = cache.WaitForFetch();     // of this rank's replica slots, in their order
//   ... backward ...
//   ReduceToHome(comm, placement, gradients_of_replicas, gradients_of_home);
//   cache.EndStep();                                         // the weights have changed
//
// Only the home rank has parameters, gradients and optimizer states. An expert's weights are sent to each replica once
// per step, gradients are sent back in each backward pass. The home rank adds them to its own gradient in the order of
// ranks, so results are deterministic, and the engine may reduce gradients after any micro-batch.
//
// Replicas have a version, the number of EndStep calls before, and one of another version is never used: backward of a
// graph from an earlier step is a programming error, and so are home weights that have changed without EndStep
// (detected by comparing samples). StartFetch and ReduceToHome are collective over the expert-parallel group; they do
// nothing if no rank has a replica.
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

// Calls `visit` with each defined member of `a` and the same member of `b`.
void ForEachTensor(const ExpertWeights& a, ExpertWeights& b,
                   const std::function<void(const at::Tensor& of_a, at::Tensor& of_b)>& visit);

bool HasReplicas(const ExpertPlacement& placement);

class ReplicaCache {
 public:
  // Within a step placements may only grow (PlanPlacement's `previous`): each must have the replicas of the one before,
  // in the same slots, or none.
  void StartFetch(const comm::Communicator& comm, const ExpertPlacement& placement,
                  const ExpertWeights& home);
  // Local. Call before the next fetch. Returns the weights of this rank's replica slots; undefined tensors if no rank
  // of the placement has a replica.
  ExpertWeights WaitForFetch();
  // The placement with all replicas of the step so far; null: none.
  const ExpertPlacement* placement() const { return placement_.has_value() ? &*placement_ : nullptr; }

  // Call after each optimizer step: drops all replicas.
  void EndStep();
  std::int64_t version() const { return version_; }
  // Aborts if the replicas that a graph uses do not have the current version.
  void CheckVersion(const ExpertPlacement& placement, int rank, std::int64_t version) const;

 private:
  void CheckHomes(const ExpertPlacement& placement, int rank, const ExpertWeights& home);

  std::int64_t version_ = 0;
  std::optional<ExpertPlacement> placement_;
  ExpertWeights replicas_, fetched_;
  RowNumbers arrived_;  // by fetched replica, in the order of slots: its index in the order of arrival
  bool uses_replicas_ = false;
  std::vector<comm::TensorWork> work_;
  at::Tensor samples_;  // (home experts, bytes): some weights of each, of this version
};

// Sends `of_replicas`, the gradients of this rank's replicas, to their home ranks and adds them to `of_home` there.
void ReduceToHome(const comm::Communicator& comm, const ExpertPlacement& placement,
                  const ExpertWeights& of_replicas, ExpertWeights& of_home);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_REPLICAS_H_
