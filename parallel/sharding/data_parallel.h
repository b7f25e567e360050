// Data parallelism of any kind: one engine for DDP, ZeRO-1, ZeRO-2, ZeRO-3 (FSDP) and HSDP.
//
//   const comm::DeviceMesh mesh = ...;  // dp_replicate=2,dp_shard=4
//   PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<DataParallel> dp,
//                          DataParallel::Create({mesh.axis("dp_replicate"), mesh.axis("dp_shard")},
//                                               units, {.strategy = Strategy::kFsdp}));
//   model.set_block_runner([&](std::size_t block, const auto& forward, const at::Tensor& x) {
//     return dp->Run(block, forward, x);
//   });
//   ShardedOptimizer optimizer(*dp, {.lr = 3e-4, .weight_decay = 0.1});
//   for (...) {
//     at::Tensor loss = dp->Forward([&] { return model.Loss(x, y) / ranks; });
//     dp->Backward(loss);
//     optimizer.Step({.clip_norm = 1});
//   }
//
// A model is a list of units, each a flat buffer (parallel/sharding/flat_layout.h) that travels as a whole;
// large parameters of root units are buffers of their own.
// Along the shard axis gradients are reduce-scattered: each rank gets the sum of its share; along the
// replicate axis shares are all-reduced; the optimizer steps the share; then parameters are all-gathered. A
// strategy only decides what a rank keeps in between (parallel/sharding/strategy.h), so per step and rank of
// N along the shard axis with P bytes of parameters: reduce-scatter P (N-1)/N, all-gather P (N-1)/N and, for
// fsdp with reshard_after_forward, once more of all blocks but the last; along the replicate axis of R ranks
// all-reduce 2 P/N (R-1)/R. For fp32
// AdamW a rank holds, per parameter: ddp 16 bytes, zero1 8 + 8/N, zero2 4 + 12/N, fsdp 16/N, and the units
// in work.
//
// Units of blocks are whole only around their forward and backward: Run says when. Root units (embeddings,
// head) are whole from Forward to the end of Backward. Models stay ordinary modules; their parameters become
// views of the flat buffers, in compute_type, and have no .grad() between steps: see shards().
//
// Every rank calls everything here, in the same order, with the same units. Calls are collective unless they
// say local. Not thread-safe.
#ifndef PLAIT_PARALLEL_SHARDING_DATA_PARALLEL_H_
#define PLAIT_PARALLEL_SHARDING_DATA_PARALLEL_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm/communicator.h"
#include "parallel/offload/state_store.h"
#include "parallel/sharding/flat_layout.h"
#include "parallel/sharding/strategy.h"

namespace plait::parallel {

struct DataParallelAxes {
  comm::Communicator replicate;
  comm::Communicator shard;  // of one rank for ddp
};

// Collective. OK where every rank along both axes brings OK; else one error, the same on all.
absl::Status AgreeAlongAxes(const DataParallelAxes& axes, const absl::Status& mine);

// Parameters that travel together.
struct ParameterUnit {
  std::string name;
  std::vector<std::pair<std::string, at::Tensor>> parameters;  // full name, leaf that requires a gradient
  // Whole from Forward to the end of Backward. Others are blocks: the i-th of them is Run's block i.
  bool root = false;
};

struct DataParallelOptions {
  Strategy strategy = Strategy::kDdp;
  // fsdp: a block is dropped after its forward and gathered again for its backward; else it is kept.
  bool reshard_after_forward = true;
  // Sharded states overlap with work: the block after the one in work is gathered meanwhile, and the
  // gradients of one unit travel while the next ones are made. Off: a rank has one unit at a time.
  bool prefetch = true;
  // Type of parameters and activations; master parameters, gradients' sums and moments keep the type that the
  // units' parameters have. Undefined: the same.
  at::ScalarType compute_type = at::ScalarType::Undefined;
  // Which parameters weight decay acts on. Empty: those with two dimensions or more.
  std::function<bool(const std::string& name, const at::Tensor& parameter)> decays = {};
  // Where parameters on the meta device come to life.
  at::Device device = at::kCPU;
  // Parameters of root units that are at least so large are flat buffers of their own: their gradients leave
  // as soon as they are there, whatever else is in the unit.
  std::int64_t root_part_bytes = std::int64_t{1} << 20;
  // Where masters live between steps: in a file or on the host (parallel/offload/state_store.h), those of one
  // unit are in memory while a step or a checkpoint visits them. fsdp then keeps shares in compute_type to
  // gather from. Masters of compute_type are the parameters, and stay unless offloads_parameters. The device
  // is the engine's.
  StateStoreOptions masters_place = {};
  // fsdp: nothing of a block or a root unit is in memory between its uses, on one rank too: its share is read
  // from masters_place before each gather, the next one meanwhile. A gather reads masters, whatever
  // compute_type is.
  bool offloads_parameters = false;
};

// Sets the parameters of one unit, which have memory, to their initial values.
using InitializeUnit = std::function<void(std::size_t unit)>;

// This rank's share of a flat buffer: of a unit, or of a part of a root unit.
struct Shard {
  const FlatLayout* layout;
  at::Tensor master;  // (layout->shard_count()), the type that parameters had; undefined in a store
  at::Tensor
      gradient;  // the same type and shape; the sum over all ranks after Backward, undefined before the first
};

class DataParallel {
 public:
  // Takes the values of world rank 0's... of rank 0 along both axes, unit by unit. Parameters on the meta
  // device get memory one unit at a time, and values from `initialize`, which is called for every unit in
  // order, on all ranks; no rank then ever has more than its shards and one unit. INVALID_ARGUMENT, the same
  // on all ranks, where units differ between ranks (first difference named), a parameter is not a leaf that
  // requires gradients, types or devices are mixed, ddp is asked for along a shard axis of several ranks, or
  // parameters are to be offloaded that the strategy keeps whole or that have no other place. Errors of
  // StateStore::Create of any rank, on all ranks.
  static absl::StatusOr<std::unique_ptr<DataParallel>> Create(const DataParallelAxes& axes,
                                                              std::vector<ParameterUnit> units,
                                                              const DataParallelOptions& options,
                                                              const InitializeUnit& initialize = {});
  // Does not communicate: behind the last Publish comes WaitForParameters or VisitWhole.
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  using BlockForward = std::function<at::Tensor(const at::Tensor&)>;
  // `forward` of block `block`, with its parameters whole; for a model's block runner. With autograd on, they
  // are whole again when its backward begins.
  at::Tensor Run(std::size_t block, const BlockForward& forward, const at::Tensor& input);

  // Calls `forward` with the root units whole; they stay so until Backward where autograd is on. The result
  // is the loss as `forward` gave it, or what else it gave.
  at::Tensor Forward(const std::function<at::Tensor()>& forward);

  // `loss`: this rank's part of the loss of the whole batch; the parts of all ranks and micro-batches add up
  // to it, so that unequal parts are no special case. Gradients are those of the sum. `last`: of a step. In
  // the passes before it, zero2 and fsdp reduce at once and keep shares if `reduce_each`, else every rank
  // adds up whole gradients, which then travel once.
  struct Pass {
    bool last = true;
    bool reduce_each = false;
  };
  void Backward(const at::Tensor& loss, const Pass& pass = {.last = true, .reduce_each = false});

  // Root of the sum of squares of all gradients, over all shares; replicas and padding count once and not at
  // all. After the last Backward.
  double GradientNorm() const;

  // Local. In the order of units, and of parts in them. An optimizer changes masters and then calls Publish.
  const std::vector<Shard>& shards() const;
  // Local. Calls `visit` with the master of shards()[shard], valid during the call (and after it if
  // masters_stay()). `changes`: what is written into it stays. Visits in the order of shards() are read
  // ahead.
  using MasterVisitor = std::function<absl::Status(const at::Tensor& master)>;
  absl::Status VisitMaster(std::size_t shard, bool changes, const MasterVisitor& visit) const;
  bool masters_stay() const;
  at::TensorOptions master_options() const;
  // Local. Why a gather had numbers that are no parameters: a share could not be read from its place. A step
  // tells it on all ranks; ask where none follows (evaluation, VisitWhole).
  const absl::Status& status() const;
  // Parameters follow their masters: starts the all-gathers that the next Forward waits for. Gradients are
  // forgotten.
  void Publish();
  // Waits for these all-gathers: before a program ends, or reads parameters outside Forward.
  void WaitForParameters();

  // Calls `visit` for every unit, one after the other, with its parameters whole, in compute_type: to export
  // or to compare a model.
  void VisitWhole(const std::function<void(const ParameterUnit& unit)>& visit);

  // Local.
  const std::vector<ParameterUnit>& units() const;
  const DataParallelAxes& axes() const;
  const DataParallelOptions& options() const;
  // Largest sum of bytes of flat buffers (parameters, masters, gradients) since Create began, on this rank;
  // of masters in a file the buffers. Moments are the optimizer's.
  std::int64_t peak_bytes() const;
  // Of shares in a file, so far: those whose read began only when they were wanted.
  std::int64_t unexpected_reads() const;

 private:
  struct State;
  explicit DataParallel(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_SHARDING_DATA_PARALLEL_H_
