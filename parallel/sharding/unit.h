// One unit of a DataParallel, or a part of one (unit_parts.h): its parameters as views of a flat buffer, this rank's
// shard of it, and the reduction of gradients to the shard. Private to parallel/sharding.
//
//   parameters   AddHold -> WaitUnsharded -> (forward or backward) -> DropHold
//   gradients    Accumulate for every parameter -> StartReduceScatter -> StartReplicaSum -> PartialGradients
//   a step       VisitMaster to change it; AllGather
//
// engine.cc and reductions.cc decide when each of these is called, in the same order on all ranks.
#ifndef PLAIT_PARALLEL_SHARDING_UNIT_H_
#define PLAIT_PARALLEL_SHARDING_UNIT_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/device_mesh.h"
#include "comm/tensor_collectives.h"
#include "models/block_model.h"
#include "parallel/offload/state_store.h"
#include "parallel/sharding/flat_buffer.h"
#include "parallel/sharding/flat_layout.h"
#include "parallel/sharding/leaf_sum.h"
#include "parallel/sharding/stored_tensor.h"
#include "parallel/sharding/strategy.h"

namespace plait::parallel {

// Shared by all units with the same axes.
struct UnitContext {
  const comm::DeviceMesh* mesh;
  // Two communicators of the same ranks, because gathers are in a fixed order and reductions are in a fixed order, but
  // not relative to each other.
  comm::Communicator gather, reduce;
  comm::Communicator replicate;
  comm::Communicator replicate_gather;  // of the same ranks, for the second halves of sums (AxisSum)
  Strategy strategy;
  at::ScalarType compute_type;
  at::TensorOptions master_options;
  BufferPool* pool;
  bool offloads_parameters = false;
  bool reproducible = false;    // sums over the tree of leaf_sum.h
  StateStore* store = nullptr;  // of masters, a slot per unit; null: they are in memory
  absl::Status* status;         // the first read error of a gather
  int ranks() const { return gather.size(); }
  bool mixed() const { return compute_type != master_options.dtype().toScalarType(); }
  bool shards_parameters() const {
    return ShardsParameters(strategy) && (ranks() > 1 || offloads_parameters);
  }
  // All-gathers start from shards in compute_type; else from masters.
  bool keeps_shards() const { return shards_parameters() && store != nullptr && !offloads_parameters; }
  bool shards_gradients() const { return ShardsGradients(strategy) && ranks() > 1; }
};

class Unit {
 public:
  // Local. Makes parameters views of an unsharded buffer, with the values that they had; zero if they were on the meta
  // device. They have the masters' type until ShardInitialValues. `name` is for messages; `slot` is the slot in the
  // masters' store and the tag of the unit's collectives. `parameters` must outlive the unit.
  Unit(const UnitContext* context, const std::string& name,
       std::vector<const models::ParameterSpec*> parameters, FlatLayout layout, std::size_t slot);
  // Does not wait; operations in flight keep their buffers alive.
  ~Unit();
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  // Collective; call once. Broadcasts values from rank 0 along all axes with the same values, makes masters of this
  // rank's shard, and reshards the unit. Returns this rank's error of the store.
  absl::Status ShardInitialValues();

  const FlatLayout& layout() const { return layout_; }
  const UnitContext& context() const { return *context_; }
  const std::vector<const models::ParameterSpec*>& parameters() const { return parameters_; }
  const StoredTensor& master() const { return master_; }
  // If `visit` changes a master in a store, parameters in memory are updated.
  absl::Status VisitMaster(bool changes, const StoredTensor::Visitor& visit);
  // This rank's shard of the summed gradient, after the last micro-batch of a step; undefined before the first.
  const at::Tensor& gradient() const { return gradient_; }

  // The unit is unsharded while held. The first hold starts the all-gather, the end of the last one reshards.
  void AddHold();
  void DropHold();
  bool held() const { return holds_ > 0; }
  void Prefetch() const;  // its gather comes next: starts reading its shard from the store
  void StartAllGather();  // ahead of a hold; no-op if it is unsharded or being gathered
  void WaitUnsharded();
  void AdvanceAllGather();
  void ReshardIfUnheld();  // no-op unless parameters are sharded
  // The master has changed: starts the all-gather of parameters, discards gradients and holds.
  void AllGather();

  // Moves .grad() of parameter `index` into the flat gradient. Returns true if it was the last one missing since
  // ExpectGradients. A gradient that arrives after StartReduceScatter is kept for ReduceLate; with reproducible sums
  // also a second gradient of the same parameter and leaf.
  bool Accumulate(std::size_t index);
  // A backward through the unit begins: gradients of all parameters are expected (again).
  void ExpectGradients();
  void BeginMicroBatch(int leaf);
  void EndMicroBatch();  // adds the leaf to its tree
  bool all_accumulated() const { return missing_ == 0; }
  // Starts the reduction of gradients; missing ones are zero. Does nothing for unsharded gradients unless `last`.
  void StartReduceScatter(bool last);
  // Polls the reduce-scatter, or waits for it. True once the shard has arrived; StartReplicaSum may follow.
  bool AdvanceReduceScatter(bool wait);
  void StartReplicaSum();
  bool AdvanceReplicaSum(bool wait);  // true when summed
  // Blocking, after these: reduces gradients that arrived late.
  void ReduceLate(bool last);
  // Views of this rank's gradients that are partial along the axis. Ranks along it must have the same layout.
  std::vector<at::Tensor> PartialGradients(const std::string& axis) const;

 private:
  at::Tensor ViewOf(const at::Tensor& flat, std::size_t index) const;
  bool CanAdopt(const at::Tensor& gradient) const;
  at::Tensor& Handle(std::size_t index) const;  // the model's
  void TakeValues();
  void Reshard();
  at::Tensor OwnShard() const;  // of the unsharded buffer
  // Tag of its collectives: two units may have the same size.
  int tag() const { return static_cast<int>(slot_); }
  absl::Status PlaceMaster();
  void FollowMaster(const at::Tensor& master);
  void LoadOwnShard();
  void ZeroPadding(const at::Tensor& flat) const;
  void ZeroMissingGradients();
  void FinishReduceScatter();
  FlatBuffer GradientBuffer() const;
  void AddLate(std::size_t index, const at::Tensor& gradient);
  void TakeSumOfLeaves();

  const UnitContext* context_;
  FlatLayout layout_;
  std::vector<const models::ParameterSpec*> parameters_;
  std::vector<std::string> same_values_;  // axes of the mesh, in its order
  FlatBuffer unsharded_;                  // parameters, compute_type
  FlatBuffer unsharded_gradient_;         // masters' type
  FlatBuffer late_gradient_;
  LeafSum leaves_, late_leaves_;                  // where sums are reproducible
  int leaf_ = 0;                                  // of this micro-batch
  std::vector<at::Tensor> views_, placeholders_;  // by parameter; placeholders where parameters are sharded
  at::Tensor initial_;                            // until ShardInitialValues: all values in the masters' type
  std::size_t slot_;
  StoredTensor master_;
  at::Tensor shard_;  // in compute_type, where keeps_shards
  at::Tensor gradient_;
  at::Tensor scattered_;           // receives a further micro-batch's shard before it is added
  std::vector<bool> filled_;       // parameters with a gradient in unsharded_gradient_, over micro-batches
  std::vector<bool> seen_;         // since ExpectGradients
  std::vector<bool> late_;         // parameters with a late gradient in this step
  std::vector<bool> late_filled_;  // in late_gradient_
  std::size_t missing_ = 0;
  bool sent_ = false;       // StartReduceScatter was called in this micro-batch
  bool has_shard_ = false;  // gradient_ holds the shards of earlier micro-batches
  int holds_ = 0;
  comm::TensorWork gathering_;
  AxisSum scattering_, summing_;
  bool gather_in_flight_ = false;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_SHARDING_UNIT_H_
