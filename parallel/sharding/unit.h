// One unit of a DataParallel: its parameters as views of a flat buffer, this rank's share of it, and the
// gradients' way from autograd to the share. Private to parallel/sharding.
//
//   parameters   StartGather -> WaitWhole -> (forward or backward) -> Drop
//   gradients    Accumulate for every parameter -> StartScatter -> StartReplicaSum
//   a step       VisitMaster to change it; Publish
//
// Nothing here decides when: data_parallel.cc does, the same on all ranks.
#ifndef PLAIT_PARALLEL_SHARDING_UNIT_H_
#define PLAIT_PARALLEL_SHARDING_UNIT_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "comm/communicator.h"
#include "comm/tensor_collectives.h"
#include "parallel/sharding/data_parallel.h"
#include "parallel/sharding/flat_buffer.h"
#include "parallel/sharding/flat_layout.h"
#include "parallel/sharding/stored_tensor.h"

namespace plait::parallel {

// What the units of a model have in common.
struct UnitSetting {
  // Of the same ranks; two, because the order of gathers and the order of reductions are each fixed, but not
  // how they mix.
  comm::Communicator gather, reduce;
  comm::Communicator replicate;
  Strategy strategy;
  at::ScalarType compute_type;
  at::TensorOptions master_options;
  BufferPool* pool;
  bool offloads_parameters = false;
  StateStore* store = nullptr;  // of masters, a slot per unit; null: they are in memory
  absl::Status* status;         // the first error of a read for a gather
  int ranks() const { return gather.size(); }
  bool mixed() const { return compute_type != master_options.dtype().toScalarType(); }
  bool shards_parameters() const {
    return ShardsParameters(strategy) && (ranks() > 1 || offloads_parameters);
  }
  // Gathers are made of shares in compute_type; else of masters.
  bool keeps_shares() const { return shards_parameters() && store != nullptr && !offloads_parameters; }
  bool shards_gradients() const { return ShardsGradients(strategy) && ranks() > 1; }
};

class Unit {
 public:
  // Local. Parameters are views of a whole buffer, with the values that they had; zero where they were on the
  // meta device. They have the masters' type until ShareOut.
  // `slot`: of the masters' store.
  Unit(const UnitSetting* setting, std::vector<at::Tensor> parameters, FlatLayout layout, std::size_t slot);
  // What is still under way is left to itself, with its memory: a run that ends early has its own message.
  ~Unit();
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  // Collective, once. Values become those of rank 0 along both axes, and masters the shares of them; the unit
  // is dropped if parameters are sharded. The error is this rank's, of the store.
  absl::Status ShareOut();

  const FlatLayout& layout() const { return layout_; }
  const StoredTensor& master() const { return master_; }
  // What computes follows a master that `visit` changes in a store.
  absl::Status VisitMaster(bool changes, const StoredTensor::Visitor& visit);
  // This rank's share of the sum, after the last pass of a step; undefined before the first.
  const at::Tensor& gradient() const { return gradient_; }

  void Expect() const;  // its gather comes next: a share that lies in a store is read meanwhile
  void StartGather();   // nothing if whole or on its way
  void WaitWhole();
  void AdvanceGather();
  void Drop();     // nothing unless parameters are sharded
  void Publish();  // the master has changed: parameters follow, gradients are forgotten

  // Takes .grad() of parameter `index` into the flat gradient. True when it was the last one missing.
  bool Accumulate(std::size_t index);
  bool all_accumulated() const { return missing_ == 0; }
  // Sends gradients on their way: those not accumulated are zero. `last` of a step: also along replicate.
  void StartScatter(bool last);
  // Moves on; true when scattered, and then StartReplicaSum may follow.
  bool AdvanceScatter(bool wait);
  void StartReplicaSum();
  bool AdvanceReplicaSum(bool wait);  // true when summed
  // Before each backward.
  void BeginPass();

 private:
  at::Tensor ViewOf(const at::Tensor& flat, std::size_t index) const;
  void TakeValues();
  at::Tensor OwnPart() const;  // of the whole buffer
  absl::Status PlaceMaster();
  void FollowMaster(const at::Tensor& master);
  void LoadOwnPart();
  void ZeroPadding();
  void ZeroWhatIsMissing();
  void FinishScatter();

  const UnitSetting* setting_;
  FlatLayout layout_;
  std::vector<at::Tensor> parameters_;
  FlatBuffer whole_;           // parameters, compute_type
  FlatBuffer gradient_whole_;  // masters' type
  at::Tensor initial_;         // until ShareOut: all values in the masters' type
  std::size_t slot_;
  StoredTensor master_;
  at::Tensor share_;  // in compute_type, where keeps_shares
  at::Tensor gradient_;
  at::Tensor scattered_;      // where a further pass's share arrives before it is added
  std::vector<bool> filled_;  // parameters with a gradient in gradient_whole_, over passes
  std::vector<bool> seen_;    // in this pass
  std::size_t missing_ = 0;
  bool has_share_ = false;  // gradient_ holds the shares of earlier passes
  comm::TensorWork gathering_, scattering_, summing_;
  bool gather_in_flight_ = false;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_SHARDING_UNIT_H_
